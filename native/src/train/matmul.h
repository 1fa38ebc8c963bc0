// Matrix products of the training graph. In ggml order a matrix [n0, n1] has n0 as its fastest axis.
#pragma once

#include "train/compute.h"

namespace cria {

// t, or a contiguous copy of it.
ggml_tensor * contiguous(Graph & g, ggml_tensor * t);

// [k, n] x [k, m] -> [n, m], batched over axes 2 and 3: ggml_mul_mat of F32, whose operands may be transposed views.
ggml_tensor * multiply(Graph & g, ggml_tensor * a, ggml_tensor * b);

// target [n, m] += the product of two matrices.
void accumulate_product(Graph & g, ggml_tensor * a, ggml_tensor * b, ggml_tensor * target);

// sum + the product, written to the memory of `sum`, which no other node may read.
ggml_tensor * add_product(Graph & g, ggml_tensor * sum, ggml_tensor * a, ggml_tensor * b);

// [m, K] x [n, K] -> [m, n]: sums the outer products over the shared last axis. F32, batched over axes 2 and 3.
ggml_tensor * outer_sum(Graph & g, ggml_tensor * a, ggml_tensor * b);

// target [in, out] += x [in, T] dy [out, T]^T: the gradient of W in y = W x.
void accumulate_outer(Graph & g, ggml_tensor * x, ggml_tensor * dy, ggml_tensor * target);

}  // namespace cria
