#include "cria/runtime.h"

#include <cstring>
#include <mutex>

#include "assertions.h"
#include "cpu/kernel_choice.h"
#include "cria/error.h"
#include "ggml-backend.h"
#include "llama.h"
#include "system/files.h"
#include "system/shared_library.h"

namespace cria {

namespace {

// Error lines are kept per thread: a model that fails to load reports its own reason, not another thread's.
thread_local std::string log_errors;
thread_local bool continues_error = false;

bool matches_release(const char * loaded, const char * compiled) {
    // A library may carry a suffix ("0.5.0-dev"); the numbers decide.
    const size_t n = std::strlen(compiled);
    return std::strncmp(loaded, compiled, n) == 0 && (loaded[n] < '0' || loaded[n] > '9');
}

// The folder that libllama was loaded from, which also contains ggml's backends (the addon's run paths list several
// folders). "" when unknown.
std::string find_llama_folder() {
    const std::string file = path_of_library(reinterpret_cast<void *>(&llama_backend_init));
    return file.empty() ? "" : file.substr(0, file.rfind('/'));
}

constexpr const char * kCpuModule = "ggml-cpu-";

// libllama may come with one build of ggml's CPU operations for each kind of CPU, as files of these names, or with only
// one.
std::string name_loaded_build() {
    const std::string file = path_of_library(find_cpu_function("ggml_backend_set_n_threads"));
    const size_t begin = file.rfind(kCpuModule);
    if (begin == std::string::npos) return "default";
    const size_t name = begin + std::strlen(kCpuModule);
    return file.substr(name, file.find('.', name) - name);
}

// A kernel named by CRIA_CPU_KERNEL has its build of ggml's operations, if there are several; else ggml takes its best.
void load_backends(const std::string & folder) {
    const char * const build = required_ggml_build();
    const std::string file = build ? folder + "/" + kModulePrefix + kCpuModule + build + kModuleSuffix : "";
    if (!build || !file_exists(file)) return ggml_backend_load_all_from_path(folder.c_str());
    if (ggml_backend_load(file.c_str())) return;
    throw Error("bad-cpu-kernel", "names a kernel whose build of ggml's operations this CPU cannot run")
        .subject("CRIA_CPU_KERNEL")
        .expected("a CPU for " + file)
        .received(std::string("\"") + cpu_kernel_name() + "\"")
        .remedy("unset it for the best kernel");
}

}  // namespace

void capture_log(ggml_log_level level, const char * text, void *) {
    const bool is_error = level == GGML_LOG_LEVEL_ERROR || (level == GGML_LOG_LEVEL_CONT && continues_error);
    continues_error = is_error;
    if (is_error && log_errors.size() < 4096) log_errors += text;
}

RuntimeInfo start_runtime() {
    RuntimeInfo info;
    info.llama_version = llama_version();
    info.ggml_version = ggml_version();
    info.expected_llama = CRIA_LLAMA_RELEASE;
    info.expected_ggml = CRIA_GGML_RELEASE;
    info.bins = find_llama_folder();
    if (!matches_release(info.llama_version.c_str(), CRIA_LLAMA_RELEASE) ||
        !matches_release(info.ggml_version.c_str(), CRIA_GGML_RELEASE)) {
        throw Error(
            "release-mismatch", "the loaded llama.cpp libraries are not the release that the addon was compiled for")
            .subject("llama.cpp")
            .expected("llama " CRIA_LLAMA_RELEASE ", ggml " CRIA_GGML_RELEASE)
            .received("llama " + info.llama_version + ", ggml " + info.ggml_version)
            .remedy("reinstall node-llama-cpp at the pinned version and rebuild the addon");
    }
    info.cpu_kernel = cpu_kernel_name();
    info.usable_cpu_kernels = usable_cpu_kernels();
    static std::once_flag once;
    std::call_once(once, [&] {
        llama_log_set(capture_log, nullptr);
        ggml_log_set(capture_log, nullptr);
        AssertionGuard::install();
        load_backends(info.bins);
        llama_backend_init();
        // Makes the list of extra buffer types now, not in the first computation: statics are destroyed in reverse
        // order of creation, and threads read this one until they are joined at exit.
        auto * cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
        using GetBufts = ggml_backend_buffer_type_t * (*)(ggml_backend_dev_t);
        if (auto get = reinterpret_cast<GetBufts>(find_cpu_function("ggml_backend_dev_get_extra_bufts"))) get(cpu);
    });
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        info.devices.emplace_back(ggml_backend_dev_name(ggml_backend_dev_get(i)));
    }
    if (!ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) {
        throw Error("no-backend", "no CPU backend could be loaded")
            .subject("llama.cpp")
            .expected("a ggml-cpu library in " + info.bins);
    }
    info.ggml_build = name_loaded_build();
    return info;
}

std::string take_log_errors() {
    std::string text;
    text.swap(log_errors);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

void * find_cpu_function(const char * name) {
    auto * cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return cpu ? ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), name) : nullptr;
}

}  // namespace cria
