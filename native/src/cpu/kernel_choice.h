// Which instruction set our CPU code uses. One choice for the process: products, softmax and integers all ask here, and
// the library of ggml's operations follows it (runtime.cc), so that its name and the machine's class name the bits.
#pragma once

#include <string>
#include <vector>

namespace cria {

enum class CpuKernel { portable, avx2, avx512 };

// What the environment variable CRIA_CPU_KERNEL names; unset or empty, the best that this CPU can run. Made at the
// first call. Throws Error("bad-cpu-kernel") for an unknown name, or one whose instructions the CPU lacks;
// start_runtime() asks first.
CpuKernel cpu_kernel();
const char * cpu_kernel_name();  // "portable", "avx2" or "avx512"
// The names of all kernels that this CPU can run, the best first.
std::vector<std::string> usable_cpu_kernels();

// The build of ggml's CPU operations ("haswell" for libggml-cpu-haswell.so) that belongs to a kernel which was asked
// for; nullptr where none was: then ggml takes its best.
const char * required_ggml_build();

// The version of something that belongs to the kernel.
template <typename T>
const T & pick_for_kernel(const T & portable, const T & avx2, const T & avx512) {
    const CpuKernel kernel = cpu_kernel();
    return kernel == CpuKernel::avx512 ? avx512 : kernel == CpuKernel::avx2 ? avx2 : portable;
}

}  // namespace cria
