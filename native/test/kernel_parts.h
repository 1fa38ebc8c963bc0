// The parts of our CPU kernels (native/src/cpu) on threads of their own. ggml's barriers are invisible to
// ThreadSanitizer, so the engine runs on one thread beside it; here nothing needs a barrier: a part may write only what
// no other reads or writes.
#pragma once

namespace cria {

// Whether parts compute what one thread alone does, bit for bit. Races are ThreadSanitizer's to report.
bool check_kernel_parts();

}  // namespace cria
