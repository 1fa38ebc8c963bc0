// The gradient of y = silu(gate) * up.
#pragma once

#include "train/compute.h"

namespace cria {

struct SwigluGradient {
    ggml_tensor *gate, *up;  // [ff, T]
};

// gate, up and dy are contiguous [ff, T].
SwigluGradient swiglu_backward(Graph & g, ggml_tensor * gate, ggml_tensor * up, ggml_tensor * dy);

}  // namespace cria
