// Chat templates: Jinja source to a prompt, rendered as Jinja2 does with the settings of
// transformers (trim_blocks, lstrip_blocks, no autoescape, an immutable sandbox, break and
// continue,
// `{% generation %}`, `tojson` that escapes no HTML, raise_exception, strftime_now).
//
// Every byte of the prompt is marked as the template's own or as its input's, through
// concatenation, slices, filters and JSON: only what the template itself wrote may become special
// tokens. What is made from numbers and containers counts as input.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/base/Status.h"

namespace strata::chat {

/// A part of a prompt; neighbours differ in `fromTemplate`, none is empty.
struct Span {
  std::string text; ///< UTF-8 where the input is.
  bool fromTemplate;
};

/// What one rendering may take, whatever the template says. Each grows with the input: by
/// `perInputByte` for every byte of text in the variables.
struct RenderLimits {
  struct Limit {
    uint64_t base, perInputByte;
  };
  Limit steps{4'000'000, 64};    ///< Expressions evaluated, items made, 64 bytes of text read.
  Limit bytes{128 << 20, 128};   ///< Of text and lists built, altogether.
  Limit textBytes{4 << 20, 8};   ///< Of any one string, the prompt included.
  uint32_t depth = 600;          ///< Expressions, blocks, macros and loops inside each other.
  uint32_t containerDepth = 100; ///< Lists and dicts inside each other.
};

struct RenderOptions {
  /// Variables whose text counts as the template's: `bos_token`, `eos_token`.
  std::vector<std::pair<std::string, std::string>> templateTexts;
  /// The local time for strftime_now; null: the machine's clock.
  std::function<std::tm()> clock;
  RenderLimits limits;
};

struct Tree;

/// Immutable; safe to share between threads.
class Template {
public:
  /// Errors: InvalidData (syntax, with its line), Unimplemented (a tag, filter or test that is not
  /// supported, by name and line), ResourceExhausted (a source of more than 4 MiB).
  static Result<Template> parse(std::string_view source);

  /// `variables` is an object: messages, tools, add_generation_prompt, whatever the template reads.
  /// Errors, with the line: InvalidArgument (raise_exception: the template refuses the input),
  /// InvalidData (what Jinja2 would refuse: an undefined value used, types that do not fit),
  /// Unimplemented (what is not supported, by name), ResourceExhausted (a limit, by name).
  Result<std::vector<Span>> render(const nlohmann::ordered_json &variables,
                                   const RenderOptions &options = {}) const;

private:
  explicit Template(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

} // namespace strata::chat
