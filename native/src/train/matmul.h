// The products that a backward pass needs. In ggml order a matrix [n0, n1] has n0 as its fastest axis.
#pragma once

#include "train/compute.h"

namespace cria {

// [in, out] x [out, T] -> [in, T]: the gradient that reaches the inputs of y = W x. W may be of any trainable type.
ggml_tensor * multiply_transposed(Graph & g, ggml_tensor * w, ggml_tensor * dy);

// [m, K] x [n, K] -> [m, n]: sums the outer products over the shared last axis (dW from x and dy). F32.
// Batched over axes 2 and 3.
ggml_tensor * outer_sum(Graph & g, ggml_tensor * a, ggml_tensor * b);

// W as F32, [in, out].
ggml_tensor * dequantize(Graph & g, ggml_tensor * w);

}  // namespace cria
