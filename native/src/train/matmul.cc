#include "train/matmul.h"

#include <algorithm>

namespace cria {

ggml_tensor * dequantize(Graph & g, ggml_tensor * w) {
    return w->type == GGML_TYPE_F32 ? w : ggml_cast(g.ctx(), w, GGML_TYPE_F32);
}

ggml_tensor * multiply_transposed(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    // An LM head of 150,000 rows would be half a gigabyte as F32: go through it in blocks of rows.
    constexpr int64_t kBlock = 16384;
    ggml_tensor * dx = nullptr;
    for (int64_t begin = 0; begin < w->ne[1]; begin += kBlock) {
        const int64_t count = std::min(kBlock, w->ne[1] - begin);
        const bool whole = count == w->ne[1];
        ggml_tensor * rows = whole ? w : ggml_view_2d(c, w, w->ne[0], count, w->nb[1], size_t(begin) * w->nb[1]);
        ggml_tensor * part = whole ? dy : ggml_cont(c, ggml_view_2d(c, dy, count, dy->ne[1], dy->nb[1], size_t(begin) * dy->nb[0]));
        ggml_tensor * product = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, dequantize(g, rows))), part);
        dx = dx ? ggml_add(c, dx, product) : product;
    }
    return dx;
}

ggml_tensor * outer_sum(Graph & g, ggml_tensor * a, ggml_tensor * b) {
    // mul_mat contracts the fastest axis, so both operands are transposed first; out_prod needs no copies but is
    // several times slower from about a thousand columns on.
    return ggml_mul_mat(g.ctx(), ggml_cont(g.ctx(), ggml_transpose(g.ctx(), a)), ggml_cont(g.ctx(), ggml_transpose(g.ctx(), b)));
}

}  // namespace cria
