// Rows of columns [rows, T] as heads [size, heads, T], and back.
#pragma once

#include "train/compute.h"

namespace cria {

// A view of the heads from row `first` on. The columns may be strided.
ggml_tensor * view_heads(Graph & g, ggml_tensor * columns, int64_t first, int64_t size, int64_t heads);

// [size, heads, T], contiguous, as [size * heads, T].
ggml_tensor * join_heads(Graph & g, ggml_tensor * heads);

}  // namespace cria
