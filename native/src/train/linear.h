// Linear layers and RMS norms: forward as llama.cpp computes them, and their vector-Jacobian products.
#pragma once

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

// x [in, T] -> [out, T]. Computed as in llama.cpp's decode, up to the order of F32 sums.
ggml_tensor * linear_forward(Graph & g, const Linear & layer, ggml_tensor * x, bool adapter);

// Use of the gradient of the inputs in linear_backward.
struct InputGradient {
    ggml_tensor * sum = nullptr;  // [in, T], overwritten with sum + dx: other layers read the same inputs
    bool wanted = true;           // false: no earlier layer is trained
};

// Adds parameter gradients; returns dx [in, T], or null when it is not wanted.
ggml_tensor * linear_backward(
    Graph & g, const Linear & layer, ggml_tensor * x, ggml_tensor * dy, InputGradient input = {});

ggml_tensor * norm_forward(Graph & g, const Norm & norm, ggml_tensor * x, float epsilon);

// x is the norm's input; normalises axis 0, all other axes are rows.
ggml_tensor * norm_backward(Graph & g, const Norm & norm, ggml_tensor * x, ggml_tensor * dy, float epsilon);

}  // namespace cria
