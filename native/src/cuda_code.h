// Whether the CUDA driver takes the kernels of a backend's library. ggml finds out with its first kernel, and ends the
// process where it does not.
#pragma once

#include <string>

namespace cria {

// Has the driver load one of the library's kernels on each of its first `devices` devices: a driver refuses PTX that is
// newer than itself, and machine code for other GPUs. `driver`: the handle of libcuda.so.1. Returns the problem, empty
// when there is none.
std::string try_cuda_code(void * driver, const std::string & library, int devices);

}  // namespace cria
