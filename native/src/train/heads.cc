#include "train/heads.h"

namespace cria {

ggml_tensor * view_heads(Graph & g, ggml_tensor * columns, int64_t first, int64_t size, int64_t heads) {
    return ggml_view_3d(g.ctx(), columns, size, heads, columns->ne[1], size_t(size) * sizeof(float), columns->nb[1],
        size_t(first) * sizeof(float));
}

ggml_tensor * join_heads(Graph & g, ggml_tensor * heads) {
    return ggml_reshape_2d(g.ctx(), heads, heads->ne[0] * heads->ne[1], heads->ne[2]);
}

}  // namespace cria
