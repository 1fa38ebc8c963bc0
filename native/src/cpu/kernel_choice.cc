#include "cpu/kernel_choice.h"

#include <cstdlib>
#include <string>

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
    bool usable;  // by this CPU
};

#ifdef __x86_64__

bool has_feature(const std::string & name) {
    __builtin_cpu_init();
    if (name == "avx512f") return __builtin_cpu_supports("avx512f");
    if (name == "avx2") return __builtin_cpu_supports("avx2");
    if (name == "fma") return __builtin_cpu_supports("fma");
    // Not a name that every compiler knows. Its instructions use the registers of AVX, which the system must save.
    unsigned eax, ebx, ecx, edx;
    if (name == "f16c") return __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    return false;
}

// `features` as CMakeLists.txt has them, where they are the compiler's options too: names with a space behind each.
bool has_all(const std::string & features) {
    for (size_t begin = 0, end; (end = features.find(' ', begin)) != std::string::npos; begin = end + 1) {
        if (!has_feature(features.substr(begin, end - begin))) return false;
    }
    return true;
}

#endif

struct Choice {
    Kernel kernel;
    bool asked_for;
};

Choice choose() {
    // The best first.
    const Kernel kernels[] = {
#ifdef __x86_64__
        {CpuKernel::avx512, "avx512", "skylakex", has_all(CRIA_AVX512_FEATURES)},
        {CpuKernel::avx2, "avx2", "haswell", has_all(CRIA_AVX2_FEATURES)},
        {CpuKernel::portable, "portable", "x64", true},
#else
        {CpuKernel::portable, "portable", nullptr, true},
#endif
    };
    const char * const variable = std::getenv("CRIA_CPU_KERNEL");
    const std::string wanted = variable ? variable : "";
    std::string usable;
    for (const Kernel & kernel : kernels) {
        if (!kernel.usable) continue;
        if (wanted.empty() || wanted == kernel.name) return {kernel, !wanted.empty()};
        usable += (usable.empty() ? "" : ", ") + std::string(kernel.name);
    }
    bool known = false;
    for (const char * name : {"portable", "avx2", "avx512"}) known |= wanted == name;
    throw Error("bad-cpu-kernel", known ? "names a kernel whose instructions this CPU lacks" : "names no kernel")
        .subject("CRIA_CPU_KERNEL").expected("a kernel that this CPU can run: " + usable).received("\"" + wanted + "\"")
        .remedy("set it to one of these, or unset it for the best");
}

const Choice & choice() {
    static const Choice made = choose();
    return made;
}

}  // namespace

CpuKernel cpu_kernel() { return choice().kernel.kernel; }
const char * cpu_kernel_name() { return choice().kernel.name; }
const char * required_ggml_build() { return choice().asked_for ? choice().kernel.ggml_build : nullptr; }

}  // namespace cria
