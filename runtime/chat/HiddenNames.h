// Which names a scope hides. Jinja2 decides for each scope, before anything runs, what each name in
// it refers to. One that is first set there, and that no scope around it mentions, is the scope's
// own from its beginning: undefined until the set has run, also where the template's variables have
// that name.
#pragma once

#include "runtime/chat/Tree.h"

namespace strata::chat {

/// Fills hiddenNames of every body.
void findHiddenNames(Tree &tree);

} // namespace strata::chat
