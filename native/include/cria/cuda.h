// The optional CUDA backend: the parts that it needs, in the order of the search, and the device that a model runs on.
#pragma once

#include <string>
#include <vector>

struct ggml_backend_device;

namespace cria {

// One part that CUDA needs. `name`: "driver", "cudart", "cublas", "package", "backend", "device", "code" or "kernels".
// Only the kernels are optional: without them training on the GPU uses ggml's operations.
struct CudaPart {
    std::string name;
    std::string found;  // its location or version; empty when it is missing
    std::string problem;  // the reason it is missing; empty when it is found, or when an earlier part is missing
};

// Looks for all parts and loads the backend into this process; safe to call again. `folder` holds libggml-cuda.so,
// empty when the package is not installed. `search` lists folders of libraries to try after the system's own.
std::vector<CudaPart> load_cuda_backend(const std::string & folder, const std::vector<std::string> & search);

// The device for "auto" | "cpu" | "cuda". Throws Error("no-device").
ggml_backend_device * select_device(const std::string & name);

// The library of our own kernels, in the addon's folder; empty when it was not built.
std::string find_kernels_library();

}  // namespace cria
