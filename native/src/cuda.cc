#include "cria/cuda.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstring>

#include "cria/error.h"
#include "cuda_code.h"
#include "cria/mutex.h"
#include "cria/runtime.h"
#include "ggml-backend.h"

namespace cria {

namespace {

std::string path_of(void * symbol) {
    Dl_info info;
    return symbol && dladdr(symbol, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

// Loads a library by name, then from each folder. It stays loaded, so that libraries that depend on it find it by name.
void * load_library(const std::string & name, const std::vector<std::string> & search, std::string & problem) {
    void * handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle) return handle;
    if (const char * error = dlerror()) problem = error;
    for (const std::string & folder : search) {
        std::string path = folder;
        path.append("/").append(name);
        struct stat status;
        if (stat(path.c_str(), &status) != 0) continue;
        handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (handle) return handle;
        if (const char * error = dlerror()) problem = error;
    }
    return nullptr;
}

CudaPart find_library(
    const char * part, const std::string & name, const char * symbol, const std::vector<std::string> & search) {
    CudaPart result{part, "", ""};
    if (void * handle = load_library(name, search, result.problem)) {
        result.problem.clear();
        result.found = path_of(dlsym(handle, symbol));
        if (result.found.empty()) result.found = name;
    }
    return result;
}

// Loads and starts the driver: a library without a device, or one too old for the backend, is unusable.
CudaPart find_driver(const std::vector<std::string> & search) {
    CudaPart result = find_library("driver", "libcuda.so.1", "cuInit", search);
    if (result.found.empty()) return result;
    constexpr int kOldest = 13000;
    void * handle = dlopen(result.found.c_str(), RTLD_NOW);
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(handle, "cuInit"));
    const auto version = reinterpret_cast<int (*)(int *)>(dlsym(handle, "cuDriverGetVersion"));
    int number = 0;
    if (!init || !version) result.problem = result.found + " is not a CUDA driver";
    else if (const int error = init(0))
        result.problem = "the driver does not start: cuInit gives error " + std::to_string(error);
    else if (version(&number) != 0 || number < kOldest) {
        result.problem = "the driver is for CUDA " + std::to_string(number / 1000) + "." +
                         std::to_string(number % 1000 / 10) + ", CUDA 13.0 is needed";
    }
    if (!result.problem.empty()) result.found.clear();
    else result.found += ", CUDA " + std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
    return result;
}

ggml_backend_reg_t find_registered() {
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        if (std::strcmp(ggml_backend_reg_name(ggml_backend_reg_get(i)), "CUDA") == 0) return ggml_backend_reg_get(i);
    }
    return nullptr;
}

// The reason that the driver cannot run the backend's kernels; a registered backend is not used then.
std::string & code_problem() {
    static std::string problem;
    return problem;
}

ggml_backend_dev_t first_cuda_device() {
    const ggml_backend_reg_t reg = code_problem().empty() ? find_registered() : nullptr;
    return reg && ggml_backend_reg_dev_count(reg) > 0 ? ggml_backend_reg_dev_get(reg, 0) : nullptr;
}

CudaPart find_devices() {
    CudaPart result{"device", "", ""};
    const ggml_backend_reg_t reg = find_registered();
    for (size_t i = 0; i < ggml_backend_reg_dev_count(reg); i++) {
        const ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
        size_t free = 0, total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        result.found += (i ? "; " : "") + std::string(ggml_backend_dev_description(device)) + ", " +
                        std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB free";
    }
    if (result.found.empty()) result.problem = "the driver names no device";
    return result;
}

}  // namespace

std::vector<CudaPart> load_cuda_backend(const std::string & folder, const std::vector<std::string> & search) {
    static Mutex mutex;  // process-wide: backends register there
    const Locked lock(mutex);
    std::vector<CudaPart> parts;
    parts.push_back(find_driver(search));
    parts.push_back(find_library("cudart", "libcudart.so.13", "cudaGetDeviceCount", search));
    // cuBLAS loads cuBLASLt by name, so that library must be found too.
    std::string ignored;
    load_library("libcublasLt.so.13", search, ignored);
    parts.push_back(find_library("cublas", "libcublas.so.13", "cublasCreate_v2", search));
    // A llama.cpp that was compiled with CUDA needs no package.
    const std::string backend_folder = folder.empty() && find_registered() ? "built into llama.cpp" : folder;
    parts.push_back({"package", backend_folder, backend_folder.empty() ? "not installed" : ""});
    const auto all_found = [&] {
        for (const CudaPart & part : parts) {
            if (part.found.empty()) return false;
        }
        return true;
    };
    CudaPart backend{"backend", "", ""};
    if (all_found()) {
        const std::string path = folder + "/libggml-cuda.so";
        if (!find_registered() && !ggml_backend_load(path.c_str())) {
            void * handle = dlopen(path.c_str(), RTLD_NOW);
            const char * error = handle ? nullptr : dlerror();
            backend.problem = error ? error : "llama.cpp refuses " + path;
        } else {
            backend.found = path;
        }
    }
    parts.push_back(backend);
    parts.push_back(backend.found.empty() ? CudaPart{"device", "", ""} : find_devices());
    CudaPart code{"code", "", ""};
    if (!parts.back().found.empty() && !folder.empty()) {
        std::string ignored_too;
        void * handle = load_library("libcuda.so.1", search, ignored_too);
        static const std::string first_problem =
            try_cuda_code(handle, backend.found, int(ggml_backend_reg_dev_count(find_registered())));
        code.problem = code_problem() = first_problem;
        if (code.problem.empty()) code.found = "the driver takes it";
    } else if (!parts.back().found.empty()) {
        code.found = "built into llama.cpp";
    }
    parts.push_back(code);
    const std::string kernels = find_kernels_library();
    parts.push_back({"kernels", kernels, kernels.empty() ? "not built" : ""});
    return parts;
}

ggml_backend_device * select_device(const std::string & name) {
    auto * cuda = first_cuda_device();
    auto * cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (name == "cpu") return cpu;
    if (name == "auto") return cuda ? cuda : cpu;
    if (name == "cuda") {
        if (cuda) return cuda;
        throw Error("no-device", "no CUDA device can be used")
            .subject("device")
            .received("device \"cuda\"")
            .remedy("`cria doctor` shows the missing parts; or use device \"cpu\"");
    }
    throw Error("bad-option", "is not a device")
        .subject("device")
        .expected("\"auto\", \"cpu\" or \"cuda\"")
        .received('"' + name + '"');
}

std::string find_kernels_library() {
    const std::string addon = path_of(reinterpret_cast<void *>(&find_kernels_library));
    const std::string path = addon.substr(0, addon.rfind('/') + 1) + "libcria-cuda.so";
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? path : "";
}

}  // namespace cria
