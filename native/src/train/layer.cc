#include "train/layer.h"

#include "train/linear.h"
#include "train/matmul.h"

namespace cria {

namespace {

ggml_tensor * rope(Graph & g, const Architecture & arch, ggml_tensor * x, ggml_tensor * positions, bool backward) {
    const auto apply = backward ? ggml_rope_ext_back : ggml_rope_ext;
    return apply(g.ctx(), x, positions, arch.rope_factors, arch.rope_dims, arch.rope_type, arch.rope_context, arch.rope_base,
                 arch.rope_scale, 0.0f, 1.0f, 32.0f, 1.0f);
}

// [D, N, T] -> [D, S, N, B]: heads apart, so that each is one matrix.
ggml_tensor * split_heads(Graph & g, ggml_tensor * x, const BatchShape & s, int64_t head_size, int64_t heads) {
    ggml_context * c = g.ctx();
    return ggml_cont(c, ggml_permute(c, ggml_reshape_4d(c, x, head_size, heads, s.row_length, s.rows), 0, 2, 1, 3));
}

// [D, S, N, B] -> [D*N, T].
ggml_tensor * merge_heads(Graph & g, ggml_tensor * x, const BatchShape & s, int64_t head_size, int64_t heads) {
    ggml_context * c = g.ctx();
    x = ggml_permute(c, ggml_reshape_4d(c, x, head_size, s.row_length, heads, s.rows), 0, 2, 1, 3);
    return ggml_cont_2d(c, x, head_size * heads, s.tokens());
}

}  // namespace

std::vector<ggml_tensor *> LayerActivations::list() const {
    return {attn_in, q_raw, k_raw, q, k, v, probs, attn_out, residual, ffn_in, gate, up, ffn_mid};
}

ggml_tensor * layer_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
                            const LayerInputs & inputs, ggml_tensor * x, bool adapter, LayerActivations & a) {
    ggml_context * c = g.ctx();
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv, G = H / KV, S = s.row_length, B = s.rows, T = s.tokens();

    a.attn_in = norm_forward(g, p.attn_norm, x, arch.norm_eps);
    ggml_tensor * q = ggml_reshape_3d(c, linear_forward(g, p.q, a.attn_in, adapter), D, H, T);
    ggml_tensor * k = ggml_reshape_3d(c, linear_forward(g, p.k, a.attn_in, adapter), D, KV, T);
    ggml_tensor * v = ggml_reshape_3d(c, linear_forward(g, p.v, a.attn_in, adapter), D, KV, T);
    a.q_raw = a.k_raw = nullptr;
    if (p.q_norm.weight) {
        a.q_raw = q;
        a.k_raw = k;
        q = norm_forward(g, p.q_norm, q, arch.norm_eps);
        k = norm_forward(g, p.k_norm, k, arch.norm_eps);
    }
    // Query heads of one KV head lie next to each other: as extra rows of one matrix they need no broadcast, and the
    // sum over the group comes for free in the gradients of K and V.
    a.q = ggml_reshape_4d(c, split_heads(g, rope(g, arch, q, inputs.positions, false), s, D, H), D, S * G, KV, B);
    a.k = split_heads(g, rope(g, arch, k, inputs.positions, false), s, D, KV);
    a.v = split_heads(g, v, s, D, KV);

    ggml_tensor * scores = ggml_reshape_4d(c, multiply(g, a.k, a.q), S, S, H, B);
    a.probs = ggml_reshape_4d(c, ggml_soft_max_ext(c, scores, inputs.mask, arch.attention_scale, 0.0f), S, S * G, KV, B);
    ggml_tensor * mixed = multiply(g, ggml_transpose(c, a.v), a.probs);  // [D, S*G, KV, B]
    a.attn_out = merge_heads(g, mixed, s, D, H);
    a.residual = ggml_add(c, linear_forward(g, p.o, a.attn_out, adapter), x);

    a.ffn_in = norm_forward(g, p.ffn_norm, a.residual, arch.norm_eps);
    a.up = linear_forward(g, p.up, a.ffn_in, adapter);
    a.gate = linear_forward(g, p.gate, a.ffn_in, adapter);
    a.ffn_mid = ggml_swiglu_split(c, a.gate, a.up);
    return ggml_add(c, linear_forward(g, p.down, a.ffn_mid, adapter), a.residual);
}

ggml_tensor * layer_backward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
                             const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * x, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv, G = H / KV, S = s.row_length, B = s.rows, T = s.tokens();

    // Feed-forward: y = residual + down(silu(gate) * up).
    ggml_tensor * d_mid = linear_backward(g, p.down, a.ffn_mid, dy);
    ggml_tensor * d_up = ggml_mul(c, d_mid, ggml_silu(c, a.gate));
    ggml_tensor * d_gate = ggml_silu_back(c, ggml_mul(c, d_mid, a.up), a.gate);
    ggml_tensor * d_ffn_in = ggml_add(c, linear_backward(g, p.gate, a.ffn_in, d_gate), linear_backward(g, p.up, a.ffn_in, d_up));
    ggml_tensor * d_residual = ggml_add(c, dy, norm_backward(g, p.ffn_norm, a.residual, d_ffn_in, arch.norm_eps));

    // Attention: out = V P with P = softmax(K^T Q).
    ggml_tensor * d_attn_out = linear_backward(g, p.o, a.attn_out, d_residual);
    ggml_tensor * d_mixed = ggml_reshape_4d(c, split_heads(g, d_attn_out, s, D, H), D, S * G, KV, B);
    ggml_tensor * d_probs = multiply(g, a.v, d_mixed);  // [S, S*G, KV, B]
    ggml_tensor * d_v = outer_sum(g, d_mixed, a.probs);     // [D, S, KV, B]
    ggml_tensor * d_scores = ggml_soft_max_ext_back(c, d_probs, a.probs, arch.attention_scale, 0.0f);
    ggml_tensor * d_q = multiply(g, ggml_transpose(c, a.k), d_scores);  // [D, S*G, KV, B]
    ggml_tensor * d_k = outer_sum(g, a.q, d_scores);                                      // [D, S, KV, B]

    d_q = rope(g, arch, ggml_reshape_3d(c, merge_heads(g, d_q, s, D, H), D, H, T), inputs.positions, true);
    d_k = rope(g, arch, ggml_reshape_3d(c, merge_heads(g, d_k, s, D, KV), D, KV, T), inputs.positions, true);
    if (p.q_norm.weight) {
        d_q = norm_backward(g, p.q_norm, a.q_raw, d_q, arch.norm_eps);
        d_k = norm_backward(g, p.k_norm, a.k_raw, d_k, arch.norm_eps);
    }
    ggml_tensor * d_attn_in = linear_backward(g, p.q, a.attn_in, ggml_reshape_2d(c, d_q, D * H, T));
    d_attn_in = ggml_add(c, d_attn_in, linear_backward(g, p.k, a.attn_in, ggml_reshape_2d(c, d_k, D * KV, T)));
    d_attn_in = ggml_add(c, d_attn_in, linear_backward(g, p.v, a.attn_in, merge_heads(g, d_v, s, D, KV)));
    return ggml_add(c, d_residual, norm_backward(g, p.attn_norm, x, d_attn_in, arch.norm_eps));
}

size_t activation_bytes(const Architecture & arch, const BatchShape & s) {
    const int64_t d = arch.n_embd, q = arch.head_size * arch.n_head, kv = arch.head_size * arch.n_head_kv;
    const int64_t ff = arch.layers.front().ffn_gate->ne[1];
    // The list in LayerActivations, plus the tensors that live between them while the layer runs (about as much again
    // of the attention part).
    const int64_t per_token = 3 * d + 3 * q + 4 * kv + 3 * ff + arch.n_head * s.row_length;
    return size_t(per_token + q + 2 * kv + arch.n_head * s.row_length) * size_t(s.tokens()) * sizeof(float);
}

}  // namespace cria
