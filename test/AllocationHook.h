// Beside AllocationHook.cpp in an executable, which replaces malloc and its kin for every thread
// and library.
#pragma once

namespace strata::test {

/// Called before each allocation, on the thread that asks; the executable defines it.
void onAllocation();

} // namespace strata::test
