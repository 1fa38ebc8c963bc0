// Runs the parts of our CPU kernels (native/src/cpu) on separate threads. ThreadSanitizer cannot see ggml's barriers,
// so its engine test uses one thread. Nothing here needs a barrier: a part may write only data that no other part reads
// or writes.
#pragma once

namespace cria {

// Whether parts compute the same bits as one thread. ThreadSanitizer reports races.
bool check_kernel_parts();

}  // namespace cria
