// The gated short convolution that some layers have in place of attention: C * conv(B * X), and its gradient.
#pragma once

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

struct ConvolutionState {
    ggml_tensor * gates;  // B, C and X, one behind the other [3d, T]
    ggml_tensor * conv;  // the convolution's result [d, T]
    ggml_tensor * out;  // the input of the output projection: C * conv [d, Q]
};

// Returns C * conv [d, T] from `gates`; sets `conv`. Each token's convolution is over itself and its ancestors [T, taps
// - 1] I32 (find_ancestors); where a sequence begins there are zeros.
ggml_tensor * short_convolution_forward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ConvolutionState & state);

// Adds the weight's gradient; returns that of `gates` [3d, T] from d_out [d, T].
ggml_tensor * short_convolution_backward(Graph & g, const Convolution & convolution, ggml_tensor * ancestors,
    const ConvolutionState & state, ggml_tensor * d_out);

}  // namespace cria
