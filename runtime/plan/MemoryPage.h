// The memory table and every arena over time, as one page for a browser.
#pragma once

#include <string>

#include "runtime/plan/Plan_generated.h"

namespace strata {

/// One self-contained HTML page that loads nothing: per stage the memory table and what growing
/// would cost; per forward the arena, commands from left to right and offsets upwards, each buffer
/// with its op and layer. The plan has passed verifyPlan().
std::string memoryPageHtml(const fb::Plan &plan);

} // namespace strata
