#include "tools/pack/ProblemFile.h"

#include <array>
#include <charconv>
#include <unordered_map>

#include "runtime/base/MappedFile.h"

namespace strata::pack {

namespace {

constexpr std::array<std::string_view, 4> kColumns = {"id", "lower", "upper", "size"};
enum Column { Id, Lower, Upper, Size };

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> splitFields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    size_t comma = line.find(',');
    fields.push_back(trim(line.substr(0, comma)));
    if (comma == std::string_view::npos)
      return fields;
    line.remove_prefix(comma + 1);
  }
}

/// What of a hostile field is repeated in a message.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string out;
  for (char c : text.substr(0, kMost))
    out += c >= 0x20 && c < 0x7f ? c : '?';
  return text.size() > kMost ? out + "..." : out;
}

class Parser {
public:
  explicit Parser(const std::string &name) : name_(name) {}

  Result<ProblemFile> parse(std::string_view text) {
    while (!text.empty()) {
      size_t end = text.find('\n');
      std::string_view line = trim(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line_;
      if (line.empty())
        continue;
      STRATA_RETURN_IF_ERROR(columnCount_ == 0 ? parseHeader(line) : parseBuffer(line));
    }
    if (columnCount_ == 0)
      return makeError(StatusCode::InvalidData,
                       "{}: the file is empty; its first line must name the columns id, lower, "
                       "upper and size",
                       name_);
    return std::move(problem_);
  }

private:
  template <class... Args>
  Status lineError(fmt::format_string<Args...> format, Args &&...args) const {
    return makeError(StatusCode::InvalidData, "{}:{}: {}", name_, line_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  Status parseHeader(std::string_view line) {
    std::vector<std::string_view> names = splitFields(line);
    columnCount_ = names.size();
    for (size_t column = 0; column < kColumns.size(); ++column) {
      position_[column] = names.size();
      for (size_t k = 0; k < names.size(); ++k) {
        if (names[k] != kColumns[column])
          continue;
        if (position_[column] != names.size())
          return lineError("column '{}' is named twice", kColumns[column]);
        position_[column] = k;
      }
      if (position_[column] == names.size())
        return lineError("column '{}' is missing from the header; it must name id, lower, upper "
                         "and size",
                         kColumns[column]);
    }
    return Status::ok();
  }

  Status parseBuffer(std::string_view line) {
    std::vector<std::string_view> fields = splitFields(line);
    if (fields.size() != columnCount_)
      return lineError("{} fields, but the header names {}", fields.size(), columnCount_);
    std::string_view id = fields[position_[Id]];
    if (id.empty())
      return lineError("the id is empty");
    auto [first, isNew] = lineOf_.emplace(id, line_);
    if (!isNew)
      return lineError("id '{}' stands already in line {}", shown(id), first->second);

    planner::Buffer buffer{};
    STRATA_RETURN_IF_ERROR(parseNumber(fields, Lower, buffer.lower));
    STRATA_RETURN_IF_ERROR(parseNumber(fields, Upper, buffer.upper));
    STRATA_RETURN_IF_ERROR(parseNumber(fields, Size, buffer.size));
    if (buffer.lower >= buffer.upper)
      return lineError("buffer '{}' lives in [{}, {}), which is empty; upper must be above lower",
                       shown(id), buffer.lower, buffer.upper);
    if (buffer.size < 1)
      return lineError("buffer '{}' has size {}; the least is 1", shown(id), buffer.size);
    if (__builtin_add_overflow(sum_, buffer.size, &sum_))
      return lineError("the sizes up to buffer '{}' add up to more than 2^63 - 1", shown(id));
    problem_.ids.emplace_back(id);
    problem_.buffers.push_back(buffer);
    return Status::ok();
  }

  Status parseNumber(const std::vector<std::string_view> &fields, Column column, int64_t &value) {
    std::string_view text = fields[position_[column]];
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range)
      return lineError("{} '{}' does not fit 64 bits", kColumns[column], shown(text));
    if (error != std::errc() || end != text.data() + text.size())
      return lineError("{} '{}' is not a whole number", kColumns[column], shown(text));
    return Status::ok();
  }

  const std::string &name_;
  size_t line_ = 0;
  size_t columnCount_ = 0; ///< 0 until the header was read.
  std::array<size_t, kColumns.size()> position_{};
  std::unordered_map<std::string, size_t> lineOf_;
  planner::Bytes sum_ = 0;
  ProblemFile problem_;
};

} // namespace

Result<ProblemFile> parseProblem(std::string_view text, const std::string &name) {
  return Parser(name).parse(text);
}

Result<ProblemFile> readProblem(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::span<const std::byte> bytes = file->bytes();
  return parseProblem({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

} // namespace strata::pack
