// Describes products with weights in ggml's tensors for our kernels.
#pragma once

#include "cpu/gemm.h"

namespace cria {

// Whether our kernels multiply plain weights of this type.
inline bool has_own_product(ggml_type type) { return is_float_type(type) || has_integer_weights(type); }

inline int64_t floats(size_t bytes) { return int64_t(bytes / sizeof(float)); }

// y (+)= W x, transposed W^T x, in F32. W's rows are read as they are stored.
inline Gemm describe_product(
    const ggml_tensor * w, bool transposed, const ggml_tensor * x, const ggml_tensor * y, bool accumulate) {
    const int64_t row = w->type == GGML_TYPE_F32 ? floats(w->nb[1]) : int64_t(w->nb[1]);
    Gemm gemm{};
    gemm.m = x->ne[1];
    gemm.n = y->ne[0];
    gemm.k = x->ne[0];
    gemm.a = static_cast<const float *>(x->data);
    gemm.a_row = floats(x->nb[1]);
    gemm.a_step = floats(x->nb[0]);
    gemm.b = w->data;
    gemm.b_type = w->type;
    gemm.b_step = transposed ? row : 1;
    gemm.b_column = transposed ? 1 : row;
    gemm.c = static_cast<float *>(y->data);
    gemm.c_row = floats(y->nb[1]);
    gemm.accumulate = accumulate;
    return gemm;
}

// The same in integers. `y` may be null if x is only rounded.
inline IntegerGemm describe_integer_product(
    const ggml_tensor * w, bool transposed, const ggml_tensor * x, const ggml_tensor * y, bool accumulate) {
    return {x->ne[1], w->ne[transposed ? 0 : 1], x->ne[0], static_cast<const float *>(x->data), floats(x->nb[1]),
        w->data, w->type, int64_t(w->nb[1]), transposed, y ? static_cast<float *>(y->data) : nullptr,
        y ? floats(y->nb[1]) : 0, accumulate};
}

}  // namespace cria
