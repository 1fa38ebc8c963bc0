// Process-wide start-up of llama.cpp: release check, log capture, backends. Safe to call from any thread, any number
// of times. The backend registry and the log callback belong to llama.cpp itself, once per process.
#pragma once

#include <string>
#include <vector>

#include "ggml.h"

namespace cria {

struct RuntimeInfo {
    std::string llama_version, ggml_version;  // of the loaded libraries
    std::string expected_llama, expected_ggml;  // of the headers that the addon was compiled with
    std::string bins;                           // folder of the libraries
    // Our CPU kernel, and ggml's build of CPU operations: "haswell" for libggml-cpu-haswell.so, "default" where there
    // is only one.
    std::string cpu_kernel, ggml_build;
    std::vector<std::string> usable_cpu_kernels;  // valid values of CRIA_CPU_KERNEL on this machine, the best first
    std::vector<std::string> devices;
};

// Checks the releases, chooses the CPU kernel (cpu/kernel_choice.h) and loads the matching CPU backend. Throws
// Error("release-mismatch" | "bad-cpu-kernel" | "no-backend").
RuntimeInfo start_runtime();

// The log callback of llama.cpp and libcria-vision.so. It keeps error lines for take_log_errors(). Any thread.
void capture_log(ggml_log_level level, const char * text, void *);

// The error lines that this thread has logged since the last call, joined.
std::string take_log_errors();

// Looks up a CPU-backend function by name, for those that cannot be linked; nullptr when this build lacks it.
void * find_cpu_function(const char * name);

}  // namespace cria
