#include "infer/fold_heads.h"

#include <cstdlib>
#include <cstring>

#include "llama-model.h"

namespace cria {

namespace {

// [n, 1, heads, streams] -> [n, heads / kv_heads, kv_heads, streams]
void regroup(ggml_tensor & t, int64_t kv_heads) {
    t.ne[1] = t.ne[2] / kv_heads;
    t.ne[2] = kv_heads;
    t.nb[1] = t.nb[2];
    t.nb[2] = t.nb[1] * size_t(t.ne[1]);
}

// The layer of a node that llama.cpp named "<prefix>-<layer>"; -1 for other names.
int layer_of(const ggml_tensor * node, const char * prefix) {
    const size_t n = std::strlen(prefix);
    return std::strncmp(node->name, prefix, n) == 0 ? std::atoi(node->name + n) : -1;
}

}  // namespace

HeadFolder::HeadFolder(const llama_model * model) : layers_(size_t(model->hparams.n_layer())) {}

bool HeadFolder::makes_rows_equal(const llama_model * model) {
#if defined(__x86_64__)
    for (uint32_t layer = 0; layer < model->hparams.n_layer(); layer++) {
        const uint32_t kv_heads = model->hparams.n_head_kv(layer);
        if (kv_heads == 0 || model->hparams.n_head(layer) < 2 * kv_heads) return false;
    }
    return true;
#else
    (void)model;
    return false;  // ARM's matrix kernels start at four or eight rows.
#endif
}

// A reused graph comes here again with what was changed the first time: nodes whose rows are not 1 any more are left alone.
void HeadFolder::fold(ggml_tensor * node) {
    if (node->ne[1] != 1 || (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_SOFT_MAX)) return;
    int layer = -1;
    const auto is = [&](const char * prefix) {
        layer = layer_of(node, prefix);
        return layer >= 0 && size_t(layer) < layers_.size();
    };
    if (node->op == GGML_OP_SOFT_MAX) {
        // The scores were written as groups; the softmax reads them as heads, as before.
        if (!is("kq_soft_max-") || ggml_are_same_shape(node->src[0], node)) return;
        ggml_tensor & scores = layers_[size_t(layer)].scores;
        scores = *node->src[0];
        for (int i = 0; i < GGML_MAX_DIMS; i++) {
            scores.ne[i] = node->ne[i];
            scores.nb[i] = node->nb[i];
        }
        node->src[0] = &scores;
        return;
    }
    const int64_t kv_heads = node->src[0]->ne[2];
    if (node->ne[2] < 2 * kv_heads) return;
    const bool mixes_values = is("kqv-");
    // Prefill's queries are not contiguous, so products with F32 keys take the vector kernel there too.
    if (!mixes_values && !(node->src[0]->type != GGML_TYPE_F32 && is("kq-"))) return;
    ggml_tensor & operand = mixes_values ? layers_[size_t(layer)].weights : layers_[size_t(layer)].query;
    operand = *node->src[1];
    regroup(operand, kv_heads);
    regroup(*node, kv_heads);
    node->src[1] = &operand;
}

}  // namespace cria
