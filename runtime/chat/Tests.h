// Tests: `value is name argument`.
#pragma once

#include <string_view>

#include "runtime/base/Status.h"
#include "runtime/chat/Evaluator.h"

namespace strata::chat {

using TestFunction = Result<bool> (*)(Evaluator &evaluator, const Value &input,
                                      const CallArguments &arguments);

TestFunction findTest(std::string_view name); ///< Null where there is none.
Status unknownTest(uint32_t line, std::string_view name);

} // namespace strata::chat
