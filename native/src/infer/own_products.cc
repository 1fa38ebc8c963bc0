#include "infer/own_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ggml-backend.h"
#include "ggml-impl.h"
#include "llama-model.h"

namespace cria {

namespace {

// From so many rows on our kernels are faster than ggml's (AVX2, shapes of SmolLM2-135M).
constexpr int64_t kLeastRows = 8, kLeastQ8Rows = 16;

bool is_plain_weight(const ggml_tensor * t) {
    if (t->op != GGML_OP_NONE || !t->buffer || !ggml_backend_buffer_is_host(t->buffer)) return false;
    if (!ggml_is_contiguous(t) || t->ne[2] != 1 || t->ne[3] != 1) return false;
    return t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || (t->type == GGML_TYPE_Q8_0 && has_integer_gemm());
}

bool has_float_rows(const ggml_tensor * t) { return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float); }

bool is_matrix(const ggml_tensor * t) { return t->ne[2] == 1 && t->ne[3] == 1; }

// Keys [size, cells, kv_heads, streams] by queries [size, tokens, heads, streams], or values [cells, size, kv_heads, streams]
// by softmax weights [cells, tokens, heads, streams]; cells or sizes lie together.
bool is_attention(const ggml_tensor * node) {
    const ggml_tensor *cache = node->src[0], *rows = node->src[1];
    if (cache->op == GGML_OP_NONE || (cache->type != GGML_TYPE_F32 && cache->type != GGML_TYPE_F16)) return false;
    return cache->nb[0] == ggml_type_size(cache->type) && rows->ne[2] % cache->ne[2] == 0 && rows->ne[3] == cache->ne[3];
}

int64_t floats(size_t bytes) { return int64_t(bytes / sizeof(float)); }

template <typename T>
T * at(const ggml_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return reinterpret_cast<T *>(static_cast<char *>(t->data) + i1 * int64_t(t->nb[1]) + i2 * int64_t(t->nb[2]) + i3 * int64_t(t->nb[3]));
}

void replace(ggml_tensor * node, ggml_custom_op_t function, void * self) {
    const ggml_custom_op_params params{function, GGML_N_TASKS_MAX, self};
    static_assert(sizeof params <= GGML_MAX_OP_PARAMS);
    node->op = GGML_OP_CUSTOM;
    std::memcpy(node->op_params, &params, sizeof params);
}

bool is_replaced_by(const ggml_tensor * node, ggml_custom_op_t function) {
    ggml_custom_op_params params;
    std::memcpy(&params, node->op_params, sizeof params);
    return node->op == GGML_OP_CUSTOM && params.fun == function;
}

// Calls multiply(gemm, stream, first head) for each product of an attention node, with A, B and C set, and their rows. Heads
// that share a KV head are rows of one product when each has a single one.
template <typename Multiply>
void for_each_product(ggml_tensor * node, int thread, int threads, const Multiply & multiply) {
    const ggml_tensor *cache = node->src[0], *rows = node->src[1];
    const int64_t group = rows->ne[2] / cache->ne[2], tokens = rows->ne[1];
    const int64_t together = tokens == 1 ? group : 1, products = rows->ne[2] / together;
    for (int64_t i = thread; i < products * rows->ne[3]; i += threads) {
        const int64_t head = i % products * together, stream = i / products;
        Gemm gemm{};
        gemm.m = tokens * together;
        gemm.n = cache->ne[1];
        gemm.k = cache->ne[0];
        gemm.a = at<const float>(rows, 0, head, stream);
        gemm.a_row = floats(tokens == 1 ? rows->nb[2] : rows->nb[1]);
        gemm.a_step = 1;
        gemm.b = at<const char>(cache, 0, head / group, stream);
        gemm.b_type = cache->type;
        gemm.b_step = 1;
        gemm.b_column = cache->type == GGML_TYPE_F32 ? floats(cache->nb[1]) : int64_t(cache->nb[1]);
        gemm.c = at<float>(node, 0, head, stream);
        gemm.c_row = floats(tokens == 1 ? node->nb[2] : node->nb[1]);
        multiply(gemm, stream);
    }
}

// Cells from the first to the last that any token of a stream may see.
int64_t count_visible(const ggml_tensor * mask, int64_t tokens, int64_t stream) {
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; t++) {
        const auto hidden = [&, f32 = at<const float>(mask, t, 0, stream), f16 = at<const ggml_fp16_t>(mask, t, 0, stream)](int64_t cell) {
            return (mask->type == GGML_TYPE_F32 ? f32[cell] : ggml_fp16_to_fp32(f16[cell])) == -INFINITY;
        };
        int64_t end = mask->ne[0];
        while (end > count && hidden(end - 1)) end--;
        count = end;
    }
    return count;
}

}  // namespace

OwnProducts::OwnProducts(int threads, bool same_bits) : same_bits_(same_bits), workspaces_(size_t(threads)) {}

bool OwnProducts::cover(const llama_model * model) {
    if (model->hparams.n_expert > 0) return false;
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        if (tensor->ne[1] > 1 && !is_plain_weight(tensor)) return false;
    }
    return true;
}

bool OwnProducts::on_node(ggml_tensor * node, bool ask, void * self) {
    if (ask) static_cast<OwnProducts *>(self)->take(node);
    return false;
}

// A reused graph comes here again with what was replaced the first time.
void OwnProducts::take(ggml_tensor * node) {
    if (node->op == GGML_OP_SOFT_MAX && node->src[1] && is_replaced_by(node->src[0], multiply_scores)) {
        // Scores that the mask hides need not be computed.
        node->src[0]->src[2] = node->src[1];
        return;
    }
    if (node->op != GGML_OP_MUL_MAT || !has_float_rows(node->src[1]) || !has_float_rows(node)) return;
    if (is_plain_weight(node->src[0])) {
        const int64_t least_rows = same_bits_ ? 1 : node->src[0]->type == GGML_TYPE_Q8_0 ? kLeastQ8Rows : kLeastRows;
        if (node->ne[1] >= least_rows && is_matrix(node->src[1])) replace(node, multiply_weight, this);
    } else if (is_attention(node)) {
        replace(node, node->src[1]->op == GGML_OP_SOFT_MAX ? mix_values : multiply_scores, this);
    }
}

void OwnProducts::multiply_weight(ggml_tensor * node, int thread, int threads, void * self) {
    Workspace & workspace = static_cast<OwnProducts *>(self)->workspaces_[size_t(thread)];
    const ggml_tensor *w = node->src[0], *x = node->src[1];
    const auto * rows = static_cast<const float *>(x->data);
    auto * out = static_cast<float *>(node->data);
    if (w->type == GGML_TYPE_Q8_0) {
        run_integer_gemm({x->ne[1], w->ne[1], w->ne[0], rows, floats(x->nb[1]), w->data, w->type, int64_t(w->nb[1]), false, out, floats(node->nb[1]), false}, thread, threads,
                         workspace.gemm.integers);
        return;
    }
    Gemm gemm{};
    gemm.m = x->ne[1];
    gemm.n = w->ne[1];
    gemm.k = w->ne[0];
    gemm.a = rows;
    gemm.a_row = floats(x->nb[1]);
    gemm.a_step = 1;
    if (w->type == GGML_TYPE_F16) {
        // As ggml and the trainer do.
        workspace.rounded.resize(size_t(gemm.m * gemm.k));
        for (int64_t i = 0; i < gemm.m; i++) gemm_kernel().round_to_f16(rows + i * gemm.a_row, workspace.rounded.data() + i * gemm.k, gemm.k);
        gemm.a = workspace.rounded.data();
        gemm.a_row = gemm.k;
    }
    gemm.b = w->data;
    gemm.b_type = w->type;
    gemm.b_step = 1;
    gemm.b_column = w->type == GGML_TYPE_F32 ? floats(w->nb[1]) : int64_t(w->nb[1]);
    gemm.c = out;
    gemm.c_row = floats(node->nb[1]);
    run_gemm(gemm, thread, threads, workspace.gemm);
}

void OwnProducts::multiply_scores(ggml_tensor * node, int thread, int threads, void * self) {
    GemmWorkspace & workspace = static_cast<OwnProducts *>(self)->workspaces_[size_t(thread)].gemm;
    const ggml_tensor * mask = node->src[2];
    for_each_product(node, thread, threads, [&](Gemm & gemm, int64_t stream) {
        if (mask) {
            const int64_t cells = gemm.n;
            gemm.n = count_visible(mask, node->ne[1], mask->ne[3] > 1 ? stream : 0);
            for (int64_t i = 0; i < gemm.m; i++) std::fill(gemm.c + i * gemm.c_row + gemm.n, gemm.c + i * gemm.c_row + cells, 0.0f);
        }
        run_gemm(gemm, 0, 1, workspace);
    });
}

void OwnProducts::mix_values(ggml_tensor * node, int thread, int threads, void * self) {
    GemmWorkspace & workspace = static_cast<OwnProducts *>(self)->workspaces_[size_t(thread)].gemm;
    for_each_product(node, thread, threads, [&](Gemm & gemm, int64_t) {
        // Hidden cells have no weight, and none at the end change no sum.
        int64_t cells = 0;
        for (int64_t i = 0; i < gemm.m; i++) {
            int64_t end = gemm.k;
            while (end > cells && gemm.a[i * gemm.a_row + end - 1] == 0.0f) end--;
            cells = end;
        }
        gemm.k = std::max<int64_t>(cells, 1);
        run_gemm(gemm, 0, 1, workspace);
    });
}

}  // namespace cria
