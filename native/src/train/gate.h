// The gate of a feed-forward block (Activation), and its gradient. clamped_silu has one on the CPU only.
#pragma once

#include "architecture.h"
#include "train/compute.h"

namespace cria {

// gate and up are contiguous [ff, T], as the result.
ggml_tensor * gate_forward(Graph & g, Activation activation, ggml_tensor * gate, ggml_tensor * up);

struct GateGradient {
    ggml_tensor *gate, *up;  // [ff, T]
};

// gate, up and dy are contiguous [ff, T].
GateGradient gate_backward(Graph & g, Activation activation, ggml_tensor * gate, ggml_tensor * up, ggml_tensor * dy);

}  // namespace cria
