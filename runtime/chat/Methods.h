// What stands behind a dot on strings, lists and dicts.
#pragma once

#include "runtime/chat/Arguments.h"
#include "runtime/chat/Evaluator.h"

namespace strata::chat {

/// Whether Python has such a method and a sandboxed template may call it.
bool hasMethod(const Value &object, std::string_view name);
/// Methods that change a list or dict, which the sandbox forbids.
bool isForbiddenMethod(const Value &object, std::string_view name);

Result<Value> callMethod(Evaluator &evaluator, const Value &self, std::string_view name,
                         const CallArguments &arguments);

using StringMethod = Result<Value> (*)(Evaluator &evaluator, const Value &self,
                                       const CallArguments &arguments);
StringMethod findStringMethod(std::string_view name); ///< Null where there is none.

/// `format % values`
Result<Value> formatPercent(Evaluator &evaluator, const Value &format, const Value &values);
/// format.format(...): `{}`, `{0}`, `{name}`, without format specifications.
Result<Value> formatBraces(Evaluator &evaluator, const Value &format,
                           const CallArguments &arguments);

enum class Side { Left, Right, Both };
/// strip(characters); white space where there are none.
Result<Value> stripText(Evaluator &evaluator, const Value &text, const Value *characters,
                        Side side);
Result<Value> replaceText(Evaluator &evaluator, const Value &text, const Value &from,
                          const Value &to, int64_t count);
Result<Value> centerText(Evaluator &evaluator, const Value &text, int64_t width, char32_t fill,
                         Side side);
Result<std::vector<Value>> splitLines(Evaluator &evaluator, const Value &text, bool keepEnds);
Result<Value> joinTexts(Evaluator &evaluator, const Value &separator,
                        const std::vector<Value> &parts);

/// upper(), lower(), title() and capitalize() of the method or (title) of the filter.
enum class CaseRule { Upper, Lower, Title, TitleFilter, Capitalize, Swap };
Result<Value> changeCase(Evaluator &evaluator, const Value &text, CaseRule rule);

} // namespace strata::chat
