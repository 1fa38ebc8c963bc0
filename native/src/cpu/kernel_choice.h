// The instruction set of our CPU code. One choice for the process: products, softmax and integers all use it, and the
// library of ggml's operations follows it (runtime.cc), so that its name and the machine's class identify the bits.
#pragma once

#include <string>
#include <vector>

namespace cria {

enum class CpuKernel { portable, avx2, avx512 };

// The kernel that the environment variable CRIA_CPU_KERNEL names; unset or empty, the best one that this CPU can run.
// Chosen at the first call, which start_runtime() makes. Throws Error("bad-cpu-kernel") for an unknown name, or one
// whose instructions the CPU lacks.
CpuKernel cpu_kernel();
const char * cpu_kernel_name();  // "portable", "avx2" or "avx512"
// Whether it is avx512, and the CPU has VNNI's instructions too: no result depends on them.
bool cpu_has_vnni();
// The names of all kernels that this CPU can run, the best first.
std::vector<std::string> usable_cpu_kernels();

// The build of ggml's CPU operations ("haswell" for libggml-cpu-haswell.so) that belongs to a kernel named by
// CRIA_CPU_KERNEL; nullptr without a name: ggml then takes its best build.
const char * required_ggml_build();

// Selects the version for the chosen kernel.
template <typename T>
const T & pick_for_kernel(const T & portable, const T & avx2, const T & avx512) {
    const CpuKernel kernel = cpu_kernel();
    return kernel == CpuKernel::avx512 ? avx512 : kernel == CpuKernel::avx2 ? avx2 : portable;
}

}  // namespace cria
