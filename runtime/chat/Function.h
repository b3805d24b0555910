// Values that can be called, and what calling them needs.
#pragma once

#include "runtime/chat/Tree.h"

namespace strata::chat {

/// The variables of one block. Blocks that are walked again begin anew.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string, Value, std::less<>> variables;
};
using ScopePtr = std::shared_ptr<Scope>;

struct Function {
  enum class Kind { Macro, Builtin, Method } kind;
  std::string name;
  Value self;                             ///< Methods.
  const MacroDefinition *macro = nullptr; ///< Macros; lives as long as the template.
  ScopePtr closure;                       ///< Macros: where it was defined.
};

/// `loop` inside a for. Items are pulled one at a time: a condition may depend on what the body
/// did.
struct Loop {
  const For *statement = nullptr;
  ScopePtr outer; ///< Where the loop stands.
  std::vector<Value> source;
  size_t pulled = 0;           ///< Of `source`.
  bool conditionDone = false;  ///< What is left of `source` has passed the condition.
  std::optional<Value> peeked; ///< Pulled for `last` or `nextitem`.
  std::optional<size_t> length;
  Value current, previous;
  size_t index = 0; ///< Of the current item, from 0.
  size_t depth = 0; ///< Recursive loops inside each other, from 0.
  std::optional<std::vector<Value>> changed;
};

/// What a filter, a test or a function was called with.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

} // namespace strata::chat
