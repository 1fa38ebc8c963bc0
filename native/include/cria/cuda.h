// The optional CUDA backend: what it needs, in the order in which it is looked for, and the device that a model runs
// on.
#pragma once

#include <string>
#include <vector>

struct ggml_backend_device;

namespace cria {

// One thing that CUDA needs. `name`: "driver", "cudart", "cublas", "package", "backend", "device", "kernels" (these
// alone are not needed: without them training on the GPU takes ggml's operations).
struct CudaPart {
    std::string name;
    std::string found;  // where, or which; empty when it is missing
    std::string problem;  // why it is missing; empty when it is found, or when something before it is missing
};

// Looks for all parts and loads the backend into this process; safe to call again. `folder` holds libggml-cuda.so,
// empty when the package is not installed. `search` are folders of libraries to look into after the system's own.
std::vector<CudaPart> load_cuda_backend(const std::string & folder, const std::vector<std::string> & search);

// The device for "auto" | "cpu" | "cuda". Throws Error("no-device").
ggml_backend_device * select_device(const std::string & name);

// The library of our own kernels, beside this addon; empty when it was not built.
std::string find_kernels_library();

}  // namespace cria
