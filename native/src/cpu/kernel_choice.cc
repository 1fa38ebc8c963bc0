#include "cpu/kernel_choice.h"

#include <cstdlib>

#include "cria/error.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace cria {

namespace {

struct Kernel {
    CpuKernel kernel;
    const char * name;
    const char * ggml_build;
};

#ifdef __x86_64__

bool has_feature(const std::string & name) {
    __builtin_cpu_init();
    if (name == "avx512f") return __builtin_cpu_supports("avx512f");
    if (name == "avx512vl") return __builtin_cpu_supports("avx512vl");
    if (name == "avx512vnni") return __builtin_cpu_supports("avx512vnni");
    if (name == "avx2") return __builtin_cpu_supports("avx2");
    if (name == "fma") return __builtin_cpu_supports("fma");
    // Not every compiler knows this name. Its instructions use the registers of AVX, which the system must save.
    unsigned eax, ebx, ecx, edx;
    if (name == "f16c")
        return __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    return false;
}

// `features` as CMakeLists.txt writes them, where they also serve as compiler options: names, each followed by a space.
bool has_all(const std::string & features) {
    for (size_t begin = 0, end; (end = features.find(' ', begin)) != std::string::npos; begin = end + 1) {
        if (!has_feature(features.substr(begin, end - begin))) return false;
    }
    return true;
}

#endif

// Kernels that this CPU can run, the best first.
std::vector<Kernel> list_usable() {
    std::vector<Kernel> kernels;
#ifdef __x86_64__
    if (has_all(CRIA_AVX512_FEATURES)) kernels.push_back({CpuKernel::avx512, "avx512", "skylakex"});
    if (has_all(CRIA_AVX2_FEATURES)) kernels.push_back({CpuKernel::avx2, "avx2", "haswell"});
    kernels.push_back({CpuKernel::portable, "portable", "x64"});
#else
    kernels.push_back({CpuKernel::portable, "portable", nullptr});
#endif
    return kernels;
}

struct Choice {
    Kernel kernel;
    bool asked_for;
};

Choice choose() {
    const char * const variable = std::getenv("CRIA_CPU_KERNEL");
    const std::string wanted = variable ? variable : "";
    const std::vector<Kernel> usable = list_usable();
    if (wanted.empty()) return {usable.front(), false};
    std::string names;
    for (const Kernel & kernel : usable) {
        if (wanted == kernel.name) return {kernel, true};
        names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    }
    const bool known = wanted == "portable" || wanted == "avx2" || wanted == "avx512";
    throw Error("bad-cpu-kernel", known ? "names a kernel whose instructions this CPU lacks" : "names no kernel")
        .subject("CRIA_CPU_KERNEL")
        .expected("a kernel that this CPU can run: " + names)
        .received("\"" + wanted + "\"")
        .remedy("set it to one of these, or unset it for the best");
}

const Choice & choice() {
    static const Choice made = choose();
    return made;
}

}  // namespace

bool cpu_has_vnni() {
#ifdef __x86_64__
    return cpu_kernel() == CpuKernel::avx512 && has_all(CRIA_VNNI_FEATURES);
#else
    return false;
#endif
}

CpuKernel cpu_kernel() { return choice().kernel.kernel; }
const char * cpu_kernel_name() { return choice().kernel.name; }
std::vector<std::string> usable_cpu_kernels() {
    std::vector<std::string> names;
    for (const Kernel & kernel : list_usable()) names.emplace_back(kernel.name);
    return names;
}

const char * required_ggml_build() { return choice().asked_for ? choice().kernel.ggml_build : nullptr; }

}  // namespace cria
