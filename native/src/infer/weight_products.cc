#include "infer/weight_products.h"

#include <cstring>

#include "ggml-backend.h"
#include "ggml-impl.h"
#include "llama-model.h"

namespace cria {

namespace {

bool is_plain_weight(const ggml_tensor * t) {
    if (t->op != GGML_OP_NONE || !t->buffer || !ggml_backend_buffer_is_host(t->buffer)) return false;
    if (!ggml_is_contiguous(t) || t->ne[2] != 1 || t->ne[3] != 1) return false;
    return t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || (t->type == GGML_TYPE_Q8_0 && has_q8_gemm());
}

bool has_float_rows(const ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float) && t->ne[2] == 1 && t->ne[3] == 1;
}

int64_t row_floats(const ggml_tensor * t) { return int64_t(t->nb[1] / sizeof(float)); }

}  // namespace

WeightProducts::WeightProducts(int threads, int least_rows) : least_rows_(least_rows), workspaces_(size_t(threads)) {}

bool WeightProducts::cover(const llama_model * model) {
    if (model->hparams.n_expert > 0) return false;
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        if (tensor->ne[1] > 1 && !is_plain_weight(tensor)) return false;
    }
    return true;
}

void WeightProducts::take(ggml_tensor * node) {
    if (node->op != GGML_OP_MUL_MAT || node->ne[1] < least_rows_) return;
    if (!is_plain_weight(node->src[0]) || !has_float_rows(node->src[1]) || !has_float_rows(node)) return;
    const ggml_custom_op_params params{compute, GGML_N_TASKS_MAX, this};
    static_assert(sizeof params <= GGML_MAX_OP_PARAMS);
    node->op = GGML_OP_CUSTOM;
    std::memcpy(node->op_params, &params, sizeof params);
}

void WeightProducts::compute(ggml_tensor * node, int thread, int threads, void * self) {
    Workspace & workspace = static_cast<WeightProducts *>(self)->workspaces_[size_t(thread)];
    const ggml_tensor *w = node->src[0], *x = node->src[1];
    const auto * rows = static_cast<const float *>(x->data);
    auto * out = static_cast<float *>(node->data);
    if (w->type == GGML_TYPE_Q8_0) {
        run_q8_gemm({x->ne[1], w->ne[1], w->ne[0], rows, row_floats(x), w->data, int64_t(w->nb[1]), out, row_floats(node)}, thread, threads, workspace.gemm.q8);
        return;
    }
    Gemm gemm{};
    gemm.m = x->ne[1];
    gemm.n = w->ne[1];
    gemm.k = w->ne[0];
    gemm.a = rows;
    gemm.a_row = row_floats(x);
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
    gemm.b_column = w->type == GGML_TYPE_F32 ? row_floats(w) : int64_t(w->nb[1]);
    gemm.c = out;
    gemm.c_row = row_floats(node);
    run_gemm(gemm, thread, threads, workspace.gemm);
}

}  // namespace cria
