#include "train/attention.h"

#include "train/backward.h"
#include "train/matmul.h"

namespace cria {

namespace {

HeadVectors head_vectors(const ggml_tensor * t, int64_t heads, int64_t first_float = 0) {
    return {static_cast<float *>(t->data) + first_float, heads, int64_t(t->nb[1] / sizeof(float))};
}

// `sinks` may be null.
AttentionTensors describe_for_cpu(const Architecture & arch, const ggml_tensor * q, const ggml_tensor * k,
    const ggml_tensor * v, const ggml_tensor * kept, const ggml_tensor * sinks) {
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
    return {D, arch.attention_scale, head_vectors(q, H), head_vectors(k, KV), head_vectors(v, KV),
        head_vectors(kept, H), head_vectors(kept, H, D * H), sinks ? static_cast<const float *>(sinks->data) : nullptr};
}

ggml_tensor * view_rows(Graph & g, ggml_tensor * t, int64_t first, int64_t count) {
    return ggml_view_2d(g.ctx(), t, count, t->ne[1], t->nb[1], size_t(first) * sizeof(float));
}

// [D*N, T] -> [D, S, N, B]: separates the heads, so that each is one matrix.
ggml_tensor * split_heads(Graph & g, ggml_tensor * x, const BatchShape & s, int64_t D, int64_t N) {
    ggml_context * c = g.ctx();
    return ggml_cont(c, ggml_permute(c, ggml_reshape_4d(c, ggml_cont(c, x), D, N, s.row_length, s.rows), 0, 2, 1, 3));
}

// [D, S, N, B] -> [D*N, T].
ggml_tensor * merge_heads(Graph & g, ggml_tensor * x, const BatchShape & s, int64_t D, int64_t N) {
    ggml_context * c = g.ctx();
    x = ggml_permute(c, ggml_reshape_4d(c, x, D, s.row_length, N, s.rows), 0, 2, 1, 3);
    return ggml_cont_2d(c, x, D * N, s.tokens());
}

// Query heads of one KV head are adjacent: as extra rows of one matrix they need no broadcast, and the gradients of K
// and V are summed over the group without extra work.
struct GroupedHeads {
    ggml_tensor *q, *k, *v;  // [D, S*G, KV, B], [D, S, KV, B], [D, S, KV, B]
};

GroupedHeads group_heads(Graph & g, const Architecture & arch, const BatchShape & s, const AttentionState & a) {
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
    ggml_tensor * q = ggml_reshape_4d(g.ctx(), split_heads(g, a.q, s, D, H), D, s.row_length * (H / KV), KV, s.rows);
    return {q, split_heads(g, a.k, s, D, KV), split_heads(g, a.v, s, D, KV)};
}

void forward_by_products(
    Graph & g, const Architecture & arch, const BatchShape & s, ggml_tensor * mask, AttentionState & a) {
    ggml_context * c = g.ctx();
    const int64_t S = s.row_length, B = s.rows, H = arch.n_head, KV = arch.n_head_kv;
    const GroupedHeads heads = group_heads(g, arch, s, a);
    ggml_tensor * scores = ggml_reshape_4d(c, multiply(g, heads.k, heads.q), S, S, H, B);
    a.kept = ggml_reshape_4d(c, ggml_soft_max_ext(c, scores, mask, arch.attention_scale, 0.0f), S, S * (H / KV), KV, B);
    a.out = merge_heads(g, multiply(g, ggml_transpose(c, heads.v), a.kept), s, arch.head_size, H);
}

AttentionGradient backward_by_products(
    Graph & g, const Architecture & arch, const BatchShape & s, const AttentionState & a, ggml_tensor * d_out) {
    ggml_context * c = g.ctx();
    const int64_t S = s.row_length, B = s.rows, D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
    const GroupedHeads heads = group_heads(g, arch, s, a);
    ggml_tensor * d_mixed = ggml_reshape_4d(c, split_heads(g, d_out, s, D, H), D, S * (H / KV), KV, B);
    ggml_tensor * d_probs = multiply(g, heads.v, d_mixed);  // [S, S*G, KV, B]
    ggml_tensor * d_v = outer_sum(g, d_mixed, a.kept);  // [D, S, KV, B]
    ggml_tensor * d_scores = soft_max_backward(g, d_probs, a.kept, arch.attention_scale);
    ggml_tensor * d_q = multiply(g, ggml_transpose(c, heads.k), d_scores);  // [D, S*G, KV, B]
    ggml_tensor * d_k = outer_sum(g, heads.q, d_scores);  // [D, S, KV, B]
    return {merge_heads(g, d_q, s, D, H), merge_heads(g, d_k, s, D, KV), merge_heads(g, d_v, s, D, KV)};
}

// Describes q, k, v and the outputs of the forward pass for the kernel; steps in floats. The node's fourth input holds
// the visibility (`ends`).
cria_attention describe_for_kernel(
    const Architecture & arch, const BatchShape & s, const ggml_tensor * node, const ggml_tensor * kept) {
    const auto floats = [](const ggml_tensor * t) { return static_cast<float *>(t->data); };
    const auto step = [](const ggml_tensor * t) { return int64_t(t->nb[1] / sizeof(float)); };
    const ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2], *ends = node->src[3];
    return {int32_t(arch.head_size), int32_t(arch.n_head), int32_t(arch.n_head_kv), int32_t(s.row_length),
        int32_t(s.rows), arch.attention_scale, static_cast<const int32_t *>(ends->data), floats(q), floats(k),
        floats(v), step(q), step(k), step(v), floats(kept), floats(kept) + arch.head_size * arch.n_head, step(kept),
        step(kept)};
}

void forward_by_kernel(
    Graph & g, const Architecture & arch, const BatchShape & s, const AttentionInputs & inputs, AttentionState & a) {
    const int64_t D = arch.head_size, H = arch.n_head;
    a.kept = g.kernel({D * H + H, s.tokens()}, {a.q, a.k, a.v, inputs.ends},
        [&arch, s](ggml_tensor * node, const DeviceKernels & kernels) {
        kernels.run_attention(describe_for_kernel(arch, s, node, node));
    });
    a.out = view_rows(g, a.kept, 0, D * H);
}

AttentionGradient backward_by_kernel(Graph & g, const Architecture & arch, const BatchShape & s,
    const AttentionInputs & inputs, const AttentionState & a, ggml_tensor * d_out) {
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
    // The last rows are the kernel's scratch memory.
    const std::vector<ggml_tensor *> sources = {a.q, a.k, a.v, inputs.ends, a.kept, d_out};
    ggml_tensor * all = g.kernel({D * (H + 2 * KV) + H, s.tokens()}, sources,
        [&arch, s, D, H, KV](ggml_tensor * node, const DeviceKernels & kernels) {
        float * const d = static_cast<float *>(node->data);
        const ggml_tensor * d_out = node->src[5];
        const int64_t step = int64_t(node->nb[1] / sizeof(float));
        kernels.run_attention_backward(describe_for_kernel(arch, s, node, node->src[4]),
            {static_cast<const float *>(d_out->data), d, d + D * H, d + D * (H + KV), d + D * (H + 2 * KV),
                int64_t(d_out->nb[1] / sizeof(float)), step, step, step, step});
    });
    return {view_rows(g, all, 0, D * H), view_rows(g, all, D * H, D * KV),
        ggml_cont(g.ctx(), view_rows(g, all, D * (H + KV), D * KV))};
}

}  // namespace

bool is_blockwise(const Compute & compute, const Architecture & arch) {
    if (compute.on_cpu()) return true;
    if (arch.window > 0) return false;  // the device's kernels know no windows
    const DeviceKernels * kernels = compute.kernels();
    return kernels && arch.head_size <= kernels->attention_head_size() && arch.head_size % 8 == 0;
}

void attention_forward(Graph & g, const Architecture & arch, const BatchShape & s, const AttentionInputs & inputs,
    const Vector & sinks, AttentionState & a) {
    if (inputs.mask) return forward_by_products(g, arch, s, inputs.mask, a);
    if (!g.on_cpu()) return forward_by_kernel(g, arch, s, inputs, a);
    const int64_t D = arch.head_size, H = arch.n_head;
    const AttentionPlan * plan = inputs.plan;
    std::vector<ggml_tensor *> sources = {a.q, a.k, a.v};
    if (sinks.weight) sources.push_back(sinks.weight);
    a.kept = g.custom({D * H + H, a.q->ne[1]}, sources,
        [&arch, plan](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_attention(*plan, describe_for_cpu(arch, node->src[0], node->src[1], node->src[2], node, node->src[3]),
            thread, threads, compute.workspace(thread));
    });
    a.out = view_rows(g, a.kept, 0, D * H);
}

AttentionGradient attention_backward(Graph & g, const Architecture & arch, const BatchShape & s,
    const AttentionInputs & inputs, const Vector & sinks, const AttentionState & a, ggml_tensor * d_out) {
    if (inputs.mask) return backward_by_products(g, arch, s, a, d_out);
    if (!g.on_cpu()) return backward_by_kernel(g, arch, s, inputs, a, d_out);
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
    const AttentionPlan * plan = inputs.plan;
    const bool trains_sinks = sinks.d_weight != nullptr;
    std::vector<ggml_tensor *> sources = {a.q, a.k, a.v, a.kept, d_out};
    if (sinks.weight) sources.push_back(sinks.weight);
    ggml_tensor * all = g.custom({D * (H + 2 * KV) + (trains_sinks ? H : 0), s.tokens()}, sources,
        [&arch, plan, trains_sinks](ggml_tensor * node, int thread, int threads, Compute & compute) {
        const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv;
        const AttentionGradients gradients{head_vectors(node->src[4], H), head_vectors(node, H),
            head_vectors(node, KV, D * H), head_vectors(node, KV, D * (H + KV)),
            trains_sinks ? head_vectors(node, H, D * (H + 2 * KV)) : HeadVectors{}};
        run_attention_backward(*plan,
            describe_for_cpu(arch, node->src[0], node->src[1], node->src[2], node->src[3], node->src[5]), gradients,
            thread, threads, compute.workspace(thread));
    });
    // There are at most as many queries as tokens.
    const auto of_queries = [&](int64_t first, int64_t count) {
        return ggml_view_2d(g.ctx(), all, count, a.q->ne[1], all->nb[1], size_t(first) * sizeof(float));
    };
    if (trains_sinks) {
        ggml_tensor * by_query = ggml_cont(g.ctx(), of_queries(D * (H + 2 * KV), H));
        g.accumulate(ggml_repeat_back(g.ctx(), by_query, sinks.weight), sinks.d_weight);
    }
    return {of_queries(0, D * H), view_rows(g, all, D * H, D * KV),
        ggml_cont(g.ctx(), view_rows(g, all, D * (H + KV), D * KV))};
}

}  // namespace cria
