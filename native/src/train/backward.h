// Gradients of ggml's operations by ggml's own, or, where the device lacks one of those, by plainer operations.
#pragma once

#include "train/compute.h"

namespace cria {

// From that of scale * x's softmax, whose result is `probs`.
ggml_tensor * soft_max_backward(Graph & g, ggml_tensor * d_probs, ggml_tensor * probs, float scale);

ggml_tensor * rms_norm_backward(Graph & g, ggml_tensor * dy, ggml_tensor * x, float epsilon);

ggml_tensor * silu_backward(Graph & g, ggml_tensor * dy, ggml_tensor * x);

// The gradient of a vector [n] that was added to, or multiplied with, each row of `dy` [n, ...]: the sum of the rows.
ggml_tensor * repeat_backward(Graph & g, ggml_tensor * dy, ggml_tensor * vector);

// The gradient of a matrix [n, N] from that of the columns that were picked from it: `d` [n, T], with their numbers
// `columns` [T] (I32). Columns that were picked several times add up.
ggml_tensor * get_rows_backward(Graph & g, ggml_tensor * d, ggml_tensor * columns, ggml_tensor * matrix);

// target [n, N] += at the column columns[i] (I32) the column i of `d` [n, T]. All three are no nodes of a graph. Where
// the device lacks the operation, the host adds them.
void add_picked_columns(
    Compute & compute, ggml_gallocr_t allocator, ggml_tensor * d, ggml_tensor * columns, ggml_tensor * target);

}  // namespace cria
