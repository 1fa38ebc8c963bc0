#include "cria/backends.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

#include "cria/error.h"
#include "cria/mutex.h"
#include "cria/runtime.h"
#include "cuda_code.h"
#include "ggml-backend.h"
#include "system/files.h"
#include "system/shared_library.h"
#include "vulkan_driver.h"

namespace cria {

namespace {

// Loads a library by name, then from each folder. It stays loaded, so that libraries that depend on it find it by name.
void * find_needed(const std::string & name, const std::vector<std::string> & search, std::string & problem) {
    void * library = load_library(name, problem, Symbols::shared);
    for (size_t i = 0; !library && i < search.size(); i++) {
        const std::string path = search[i] + "/" + name;
        if (file_exists(path)) library = load_library(path, problem, Symbols::shared);
    }
    return library;
}

BackendPart find_library(
    const char * part, const std::string & name, const char * symbol, const std::vector<std::string> & search) {
    BackendPart result{part, "", ""};
    if (void * library = find_needed(name, search, result.problem)) {
        result.problem.clear();
        result.found = path_of_library(find_function(library, symbol));
        if (result.found.empty()) result.found = name;
    }
    return result;
}

// Loads and starts NVIDIA's driver: a library without a device, or one too old for the backend, is unusable.
BackendPart find_cuda_driver(const std::vector<std::string> & search) {
    BackendPart result = find_library("driver", "libcuda.so.1", "cuInit", search);
    if (result.found.empty()) return result;
    constexpr int kOldest = 13000;
    void * driver = load_library(result.found, result.problem);
    const auto init = driver ? reinterpret_cast<int (*)(unsigned)>(find_function(driver, "cuInit")) : nullptr;
    const auto version =
        driver ? reinterpret_cast<int (*)(int *)>(find_function(driver, "cuDriverGetVersion")) : nullptr;
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

std::vector<BackendPart> find_cuda_needs(const std::vector<std::string> & search) {
    std::vector<BackendPart> parts;
    parts.push_back(find_cuda_driver(search));
    parts.push_back(find_library("cudart", "libcudart.so.13", "cudaGetDeviceCount", search));
    // cuBLAS loads cuBLASLt by name, so that library must be found too.
    std::string ignored;
    find_needed("libcublasLt.so.13", search, ignored);
    parts.push_back(find_library("cublas", "libcublas.so.13", "cublasCreate_v2", search));
    return parts;
}

std::vector<BackendPart> find_vulkan_needs(const std::vector<std::string> & search) {
    BackendPart driver{"driver", "", ""};
    if (void * loader = find_needed(kVulkanLoader, search, driver.problem)) {
        driver.problem.clear();
        driver.found = name_vulkan_devices(loader, driver.problem);
    }
    return {driver};
}

// macOS's own. The addon's llama.cpp is linked with it there.
std::vector<BackendPart> find_metal_needs(const std::vector<std::string> & search) {
    constexpr const char * kFramework = "/System/Library/Frameworks/Metal.framework/Metal";
    return {find_library("driver", kFramework, "MTLCreateSystemDefaultDevice", search)};
}

struct Backend {
    const char * device;  // as users name it
    const char * registry;  // and as ggml does
    const char * module;
    // Loads what the library is linked with. The first part is the driver.
    std::vector<BackendPart> (*find_needs)(const std::vector<std::string> & search);
};

const Backend kBackends[] = {{"cuda", "CUDA", "ggml-cuda", find_cuda_needs},
    {"vulkan", "Vulkan", "ggml-vulkan", find_vulkan_needs}, {"metal", "MTL", "ggml-metal", find_metal_needs}};
const Backend & kCuda = kBackends[0];

// Null when there is none of this name.
const Backend * find_backend(const std::string & device) {
    const auto * found = std::find_if(
        std::begin(kBackends), std::end(kBackends), [&](const Backend & backend) { return device == backend.device; });
    return found == std::end(kBackends) ? nullptr : found;
}

Error refuse_name(const std::string & name) {
    Error error("bad-option", "is not a device");
    error.subject("device").expected("\"auto\", \"cpu\", \"cuda\", \"metal\" or \"vulkan\"").received('"' + name + '"');
    return error;
}

ggml_backend_reg_t find_registered(const Backend & backend) {
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        const ggml_backend_reg_t reg = ggml_backend_reg_get(i);
        if (std::strcmp(ggml_backend_reg_name(reg), backend.registry) == 0) return reg;
    }
    return nullptr;
}

// The reason that the driver cannot run CUDA's kernels; the registered backend is not used then.
std::string & code_problem() {
    static std::string problem;
    return problem;
}

ggml_backend_dev_t first_device(const Backend & backend) {
    const bool is_refused = &backend == &kCuda && !code_problem().empty();
    const ggml_backend_reg_t reg = is_refused ? nullptr : find_registered(backend);
    return reg && ggml_backend_reg_dev_count(reg) > 0 ? ggml_backend_reg_dev_get(reg, 0) : nullptr;
}

// `driver`: what it says of its devices.
BackendPart find_devices(const Backend & backend, const std::string & driver) {
    BackendPart result{"device", "", ""};
    const ggml_backend_reg_t reg = find_registered(backend);
    for (size_t i = 0; i < ggml_backend_reg_dev_count(reg); i++) {
        const ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
        size_t free = 0, total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        result.found += (i ? "; " : "") + std::string(ggml_backend_dev_description(device)) + ", " +
                        std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB free";
    }
    if (result.found.empty()) result.problem = "llama.cpp takes no device of the driver: " + driver;
    return result;
}

BackendPart load_library_of(const Backend & backend, const std::string & folder) {
    BackendPart result{"backend", "", ""};
    const std::string path = folder + "/" + kModulePrefix + backend.module + kModuleSuffix;
    const bool is_built_in = folder.empty() && find_registered(backend);
    if (is_built_in) {
        result.found = "built into llama.cpp";
    } else if (!find_registered(backend) && !ggml_backend_load(path.c_str())) {
        if (load_library(path, result.problem)) result.problem = "llama.cpp refuses " + path;
    } else {
        result.found = path;
    }
    return result;
}

BackendPart try_code(const std::string & folder, const std::string & library, const std::vector<std::string> & search) {
    BackendPart code{"code", "", ""};
    if (folder.empty()) {
        code.found = "built into llama.cpp";
        return code;
    }
    std::string ignored;
    void * driver = find_needed("libcuda.so.1", search, ignored);
    static const std::string first_problem =
        try_cuda_code(driver, library, int(ggml_backend_reg_dev_count(find_registered(kCuda))));
    code.problem = code_problem() = first_problem;
    if (code.problem.empty()) code.found = "the driver takes it";
    return code;
}

}  // namespace

std::vector<BackendPart> load_backend(
    const std::string & name, const std::string & folder, const std::vector<std::string> & search) {
    static Mutex mutex;  // process-wide: backends register there
    const Locked lock(mutex);
    const Backend * const backend = find_backend(name);
    if (!backend) throw refuse_name(name);
    std::vector<BackendPart> parts = backend->find_needs(search);
    // A llama.cpp that was compiled with the backend needs no package.
    const std::string backend_folder = folder.empty() && find_registered(*backend) ? "built into llama.cpp" : folder;
    parts.push_back({"package", backend_folder, backend_folder.empty() ? "not installed" : ""});
    const bool all_found =
        std::none_of(parts.begin(), parts.end(), [](const BackendPart & part) { return part.found.empty(); });
    const BackendPart library = all_found ? load_library_of(*backend, folder) : BackendPart{"backend", "", ""};
    parts.push_back(library);
    const BackendPart device =
        library.found.empty() ? BackendPart{"device", "", ""} : find_devices(*backend, parts.front().found);
    parts.push_back(device);
    if (backend != &kCuda) return parts;
    parts.push_back(device.found.empty() ? BackendPart{"code", "", ""} : try_code(folder, library.found, search));
    const std::string kernels = find_kernels_library();
    parts.push_back({"kernels", kernels, kernels.empty() ? "not built" : ""});
    return parts;
}

ggml_backend_device * select_device(const std::string & name) {
    auto * cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (name == "cpu") return cpu;
    if (name == "auto") {
        auto * cuda = first_device(kCuda);
        return cuda ? cuda : cpu;
    }
    const Backend * const backend = find_backend(name);
    if (!backend) throw refuse_name(name);
    if (auto * device = first_device(*backend)) return device;
    throw Error("no-device", std::string("no ") + backend->registry + " device can be used")
        .subject("device")
        .received("device \"" + name + '"')
        .remedy("`cria doctor` shows the missing parts; or use device \"cpu\"");
}

std::string name_kind(ggml_backend_device * device) {
    std::string kind = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
    for (const Backend & backend : kBackends)
        if (kind == backend.registry) return backend.device;
    for (char & letter : kind) letter = char(std::tolower(static_cast<unsigned char>(letter)));
    return kind;
}

std::string find_kernels_library() {
    const std::string addon = path_of_library(reinterpret_cast<void *>(&find_kernels_library));
    const std::string path = addon.substr(0, addon.rfind('/') + 1) + "libcria-cuda.so";
    return file_exists(path) ? path : "";
}

}  // namespace cria
