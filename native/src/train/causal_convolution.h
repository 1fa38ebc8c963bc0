// A causal convolution over the tokens of trees, each dimension by itself, and its gradient.
#pragma once

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

// The convolution of x [d, T]. Each token sees itself and its ancestors [T, taps - 1] I32 (find_ancestors); where a
// sequence begins there are zeros. The last tap of the weight [taps, d] is for the token itself.
ggml_tensor * causal_convolution_forward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x);

// Adds the weight's gradient; returns that of x [d, T] from that of the convolution.
ggml_tensor * causal_convolution_backward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x, ggml_tensor * dy);

}  // namespace cria
