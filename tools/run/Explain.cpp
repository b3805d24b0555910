// strata-run explain: the plan's memory table.
#include <memory>
#include <span>

#include "runtime/base/OutputFile.h"
#include "runtime/plan/MemoryPage.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"

namespace strata::run {
namespace {

Status writePage(const std::string &path, const std::string &page) {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::create(path));
  STRATA_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(page))));
  return file->publish(path);
}

} // namespace

Action addExplain(CLI::App &command) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("PLAN", *path, "A plan file")->required();
  auto page = std::make_shared<std::string>();
  CLI::Option *jsonFlag = command.add_flag("--json", *json, "Print one JSON object");
  command.add_option("--html", *page, "Write a page that draws the arenas to this file")
      ->excludes(jsonFlag);
  return [path, json, page]() -> Status {
    STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> file, PlanFile::open(*path));
    if (!page->empty())
      return writePage(*page, memoryPageHtml(file->plan()));
    std::string table = *json ? memoryTableJson(file->plan()) : memoryTableText(file->plan());
    fmt::print("{}{}", table, table.ends_with('\n') ? "" : "\n");
    return Status::ok();
  };
}

} // namespace strata::run
