// strata-run explain: the plan's memory table.
#include <memory>

#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"

namespace strata::run {

Action addExplain(CLI::App &command) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("PLAN", *path, "A plan file")->required();
  command.add_flag("--json", *json, "Print one JSON object");
  return [path, json]() -> Status {
    STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> file, PlanFile::open(*path));
    std::string table = *json ? memoryTableJson(file->plan()) : memoryTableText(file->plan());
    fmt::print("{}{}", table, table.ends_with('\n') ? "" : "\n");
    return Status::ok();
  };
}

} // namespace strata::run
