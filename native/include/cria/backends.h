// llama.cpp's optional backends for GPUs: the parts that each needs, in the order of the search, and the device that a
// model runs on.
#pragma once

#include <string>
#include <vector>

struct ggml_backend_device;

namespace cria {

// One part that a backend needs. `name`: of CUDA "driver", "cudart", "cublas", "package", "backend", "device", "code"
// or "kernels"; of Metal and Vulkan "driver", "package", "backend" or "device". Only the kernels are optional: without
// them training on the GPU uses ggml's operations.
struct BackendPart {
    std::string name;
    std::string found;  // its location or version; empty when it is missing
    std::string problem;  // the reason it is missing; empty when it is found, or when an earlier part is missing
};

// Looks for all parts and loads the backend into this process; safe to call again. `name` is "cuda", "metal" or
// "vulkan". `folder` holds its library (libggml-cuda.so), empty when the package is not installed. `search` lists
// folders of libraries to try after the system's own. Throws Error("bad-option").
std::vector<BackendPart> load_backend(
    const std::string & name, const std::string & folder, const std::vector<std::string> & search);

// The device for "auto" | "cpu" | "cuda" | "metal" | "vulkan". Throws Error("no-device" | "bad-option").
ggml_backend_device * select_device(const std::string & name);

// The name by which users select such a device; of others ggml's own name of their backend, in lowercase.
std::string name_kind(ggml_backend_device * device);

// The library of our own CUDA kernels, in the addon's folder; empty when it was not built.
std::string find_kernels_library();

}  // namespace cria
