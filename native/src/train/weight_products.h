// Products with weights as they are stored, of any type. In ggml order a matrix [n0, n1] has n0 as its fastest axis.
#pragma once

#include "train/compute.h"

namespace cria {

// x [n, T] with every value rounded to F16, as ggml rounds activations before it multiplies F16 weights. CPU only.
ggml_tensor * add_rounding_to_f16(Graph & g, ggml_tensor * x);

// W [in, out], x [in, T] -> [out, T]. Activations are rounded as in decoding, with the same bits where
// has_own_product().
ggml_tensor * multiply_weight(Graph & g, ggml_tensor * w, ggml_tensor * x);

// W [in, out], dy [out, T] -> [in, T]: the gradient of the inputs of y = W x. W may be of any trainable type.
ggml_tensor * multiply_transposed(Graph & g, ggml_tensor * w, ggml_tensor * dy);

// sum + multiply_transposed(), written to the memory of `sum`, which no other node may read; without a sum, only the
// product.
ggml_tensor * add_transposed(Graph & g, ggml_tensor * sum, ggml_tensor * w, ggml_tensor * dy);

}  // namespace cria
