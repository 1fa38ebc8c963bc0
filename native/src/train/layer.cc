#include "train/layer.h"

#include <algorithm>
#include <iterator>

#include "train/gate.h"
#include "train/heads.h"
#include "train/linear.h"
#include "train/matmul.h"

namespace cria {

namespace {

// Without RoPE, `x` itself.
ggml_tensor * rope(Graph & g, const Architecture & arch, const LayerMath & math, ggml_tensor * x,
    ggml_tensor * positions, bool backward) {
    if (!math.has_rope) return ggml_is_contiguous(x) ? x : ggml_cont(g.ctx(), x);
    if (arch.has_grids()) {
        int sections[4];
        std::copy(std::begin(arch.rope_sections), std::end(arch.rope_sections), sections);
        const auto apply = backward ? ggml_rope_multi_back : ggml_rope_multi;
        return apply(g.ctx(), x, positions, arch.rope_factors, arch.rope_dims, sections, arch.rope_type,
            arch.rope_context, math.rope_base, math.rope_scale, arch.ext_factor, arch.attn_factor, arch.beta_fast,
            arch.beta_slow);
    }
    const auto apply = backward ? ggml_rope_ext_back : ggml_rope_ext;
    return apply(g.ctx(), x, positions, arch.rope_factors, arch.rope_dims, arch.rope_type, arch.rope_context,
        math.rope_base, math.rope_scale, arch.ext_factor, arch.attn_factor, arch.beta_fast, arch.beta_slow);
}

// The columns of `tokens` that the layer computes (`wanted`).
ggml_tensor * pick_wanted(Graph & g, const LayerInputs & inputs, ggml_tensor * tokens) {
    return inputs.wanted ? ggml_get_rows(g.ctx(), tokens, inputs.wanted) : tokens;
}

// sum [d, T] + the columns of the wanted tokens [d, Q]; may overwrite `sum`.
ggml_tensor * add_wanted(Graph & g, const LayerInputs & inputs, ggml_tensor * sum, ggml_tensor * columns) {
    if (!inputs.wanted) return ggml_add(g.ctx(), sum, columns);
    return g.custom_inplace(sum, {columns, inputs.wanted}, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const ggml_tensor * columns = node->src[1];
        const int32_t * wanted = static_cast<const int32_t *>(node->src[2]->data);
        // Wanted tokens are distinct, so no two threads write the same column.
        for (int64_t i = thread; i < columns->ne[1]; i += threads) {
            float * out = static_cast<float *>(node->data) + wanted[i] * node->ne[0];
            const float * in = static_cast<const float *>(columns->data) + i * node->ne[0];
            for (int64_t j = 0; j < node->ne[0]; j++) out[j] += in[j];
        }
    });
}

// The norm of what a part of the block adds, if it has one; keeps its input in `raw`.
ggml_tensor * post_norm_forward(Graph & g, const Norm & norm, ggml_tensor * x, float epsilon, ggml_tensor *& raw) {
    raw = norm.weight ? x : nullptr;
    return raw ? norm_forward(g, norm, x, epsilon) : x;
}

ggml_tensor * post_norm_backward(Graph & g, const Norm & norm, ggml_tensor * raw, ggml_tensor * dy, float epsilon) {
    return raw ? norm_backward(g, norm, raw, dy, epsilon) : dy;
}

// Queries [D, H, Q] by the factors of their positions, or the gradient of them unscaled from that of them scaled.
ggml_tensor * scale_by_position(Graph & g, const LayerInputs & inputs, ggml_tensor * q) {
    return inputs.query_scales ? ggml_mul(g.ctx(), q, inputs.query_scales) : q;
}

// The same by the architecture's factor. Contiguous.
ggml_tensor * scale_queries(Graph & g, const Architecture & arch, ggml_tensor * q) {
    return arch.query_scale == 1.0f ? q : ggml_scale(g.ctx(), q, arch.query_scale);
}

// The term that a part of the block adds, or its gradient from the sum's.
ggml_tensor * scale_part(Graph & g, const Architecture & arch, ggml_tensor * x) {
    return arch.residual_scale == 1.0f ? x : ggml_scale(g.ctx(), x, arch.residual_scale);
}

// Queries [D, H, Q] out of the projection's result; their gate, if they have one, goes into `a`.
ggml_tensor * split_queries(Graph & g, const Architecture & arch, ggml_tensor * projected, LayerActivations & a) {
    ggml_context * c = g.ctx();
    const int64_t D = arch.head_size, H = arch.n_head, Q = projected->ne[1];
    if (!arch.gates_queries) return ggml_reshape_3d(c, projected, D, H, Q);
    const auto half = [&](int64_t number) {
        return ggml_view_3d(
            c, projected, D, H, Q, size_t(2 * D) * sizeof(float), projected->nb[1], size_t(number * D) * sizeof(float));
    };
    a.query_gate = ggml_cont_2d(c, half(1), D * H, Q);
    return ggml_cont(c, half(0));
}

// The input of the output projection [D*H, Q].
ggml_tensor * gate_output(Graph & g, const LayerActivations & a) {
    ggml_tensor * out = a.attention.out;
    return a.query_gate ? ggml_mul(g.ctx(), out, ggml_sigmoid(g.ctx(), a.query_gate)) : out;
}

// The gradient of the queries' projection, [D, 2, H, Q], from those of the gated output and of the queries [D, H, Q].
ggml_tensor * add_gate_gradient(Graph & g, const LayerActivations & a, ggml_tensor * d_gated, ggml_tensor * d_q) {
    ggml_context * c = g.ctx();
    const int64_t D = d_q->ne[0], H = d_q->ne[1], Q = d_q->ne[2];
    ggml_tensor * open = ggml_sigmoid(c, a.query_gate);
    ggml_tensor * slope = ggml_sub(c, open, ggml_sqr(c, open));
    ggml_tensor * d_gate = ggml_mul(c, ggml_mul(c, a.attention.out, d_gated), slope);
    const auto as_half = [&](ggml_tensor * t) { return ggml_reshape_4d(c, t, D, 1, H, Q); };
    return ggml_concat(c, as_half(d_q), as_half(d_gate), 1);
}

// Attention up to its output projection's result.
ggml_tensor * attend_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, bool adapter, LayerActivations & a) {
    ggml_context * c = g.ctx();
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv, T = s.tokens(),
                  Q = inputs.wanted ? inputs.wanted->ne[0] : T;
    ggml_tensor * query_positions = inputs.wanted ? inputs.wanted_positions : inputs.positions;

    a.query_in = pick_wanted(g, inputs, a.attn_in);
    ggml_tensor * q = split_queries(g, arch, linear_forward(g, p.q, a.query_in, adapter), a);
    ggml_tensor * k = ggml_reshape_3d(c, linear_forward(g, p.k, a.attn_in, adapter), D, KV, T);
    a.attention.v = linear_forward(g, p.v, a.attn_in, adapter);
    if (p.q_norm.weight) {
        a.q_raw = q;
        a.k_raw = k;
        q = norm_forward(g, p.q_norm, q, arch.norm_eps);
        k = norm_forward(g, p.k_norm, k, arch.norm_eps);
    }
    q = scale_queries(g, arch, scale_by_position(g, inputs, rope(g, arch, p.math, q, query_positions, false)));
    a.attention.q = ggml_reshape_2d(c, q, D * H, Q);
    a.attention.k = ggml_reshape_2d(c, rope(g, arch, p.math, k, inputs.positions, false), D * KV, T);
    attention_forward(g, arch, s, inputs.attention, p.sinks, a.attention);
    return linear_forward(g, p.o, gate_output(g, a), adapter);
}

// The gradient of attn_in from that of the output projection's result; null when it is not wanted.
ggml_tensor * attend_backward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * d_o, bool input_wanted) {
    ggml_context * c = g.ctx();
    const int64_t D = arch.head_size, H = arch.n_head, KV = arch.n_head_kv, T = s.tokens(), Q = d_o->ne[1];

    ggml_tensor * d_gated = linear_backward(g, p.o, gate_output(g, a), d_o);
    ggml_tensor * d_out = a.query_gate ? ggml_mul(c, d_gated, ggml_sigmoid(c, a.query_gate)) : d_gated;
    const AttentionGradient d = attention_backward(g, arch, s, inputs.attention, p.sinks, a.attention, d_out);
    ggml_tensor * d_q = rope(g, arch, p.math, scale_by_position(g, inputs, view_heads(g, d.q, 0, D, H)),
        inputs.wanted ? inputs.wanted_positions : inputs.positions, true);
    d_q = scale_queries(g, arch, d_q);
    ggml_tensor * d_k = rope(g, arch, p.math, view_heads(g, d.k, 0, D, KV), inputs.positions, true);
    if (p.q_norm.weight) {
        d_q = norm_backward(g, p.q_norm, a.q_raw, d_q, arch.norm_eps);
        d_k = norm_backward(g, p.k_norm, a.k_raw, d_k, arch.norm_eps);
    }
    if (a.query_gate) d_q = add_gate_gradient(g, a, d_gated, d_q);
    ggml_tensor * d_query_in = linear_backward(
        g, p.q, a.query_in, ggml_reshape_2d(c, d_q, ggml_nelements(d_q) / Q, Q), {nullptr, input_wanted});
    ggml_tensor * d_attn_in = linear_backward(
        g, p.k, a.attn_in, ggml_reshape_2d(c, d_k, D * KV, T), {inputs.wanted ? nullptr : d_query_in, input_wanted});
    d_attn_in = linear_backward(g, p.v, a.attn_in, d.v, {d_attn_in, input_wanted});
    if (!input_wanted) return nullptr;
    return inputs.wanted ? add_wanted(g, inputs, d_attn_in, d_query_in) : d_attn_in;
}

// The same of a convolution.
ggml_tensor * convolve_forward(
    Graph & g, const LayerParameters & p, const LayerInputs & inputs, bool adapter, LayerActivations & a) {
    a.convolution.gates = linear_forward(g, p.conv_in, a.attn_in, adapter);
    // All tokens, because each reads others; only the wanted ones go on.
    a.convolution.out = pick_wanted(g, inputs, short_convolution_forward(g, p.conv, inputs.ancestors, a.convolution));
    return linear_forward(g, p.conv_out, a.convolution.out, adapter);
}

ggml_tensor * convolve_backward(Graph & g, const LayerParameters & p, const LayerInputs & inputs,
    const LayerActivations & a, ggml_tensor * d_o, bool input_wanted) {
    ggml_tensor * d_out = linear_backward(g, p.conv_out, a.convolution.out, d_o);
    if (inputs.wanted) d_out = ggml_get_rows_back(g.ctx(), d_out, inputs.wanted, a.attn_in);
    ggml_tensor * d_gates = short_convolution_backward(g, p.conv, inputs.ancestors, a.convolution, d_out);
    return linear_backward(g, p.conv_in, a.attn_in, d_gates, {nullptr, input_wanted});
}

// The same of layers with a state.
ggml_tensor * delta_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const LayerInputs & inputs,
    bool adapter, LayerActivations & a) {
    const StateInputs visible{inputs.state_plan, inputs.ancestors};
    a.delta.out = pick_wanted(g, inputs, delta_net_forward(g, arch, p.delta, visible, a.attn_in, adapter, a.delta));
    return linear_forward(g, p.delta.out, a.delta.out, adapter);
}

ggml_tensor * mamba_layer_forward(Graph & g, const Architecture & arch, const LayerParameters & p,
    const LayerInputs & inputs, bool adapter, LayerActivations & a) {
    const StateInputs visible{inputs.state_plan, inputs.ancestors};
    a.mamba.out = pick_wanted(g, inputs, mamba_forward(g, arch, p.mamba, visible, a.attn_in, adapter, a.mamba));
    return linear_forward(g, p.mamba.out, a.mamba.out, adapter);
}

// The gradient of a layer's output for all tokens, from that of the output projection's result: zero for the others.
ggml_tensor * output_backward(Graph & g, const Linear & projection, const LayerInputs & inputs, ggml_tensor * out,
    ggml_tensor * d_o, int64_t tokens) {
    ggml_tensor * d_out = linear_backward(g, projection, out, d_o);
    if (!inputs.wanted) return d_out;
    return ggml_get_rows_back(
        g.ctx(), d_out, inputs.wanted, ggml_new_tensor_2d(g.ctx(), GGML_TYPE_F32, d_out->ne[0], tokens));
}

ggml_tensor * state_backward(Graph & g, const Architecture & arch, const LayerParameters & p,
    const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * d_o, bool input_wanted) {
    const StateInputs visible{inputs.state_plan, inputs.ancestors};
    const int64_t T = a.attn_in->ne[1];
    if (p.mamba.in.weight) {
        ggml_tensor * d_out = output_backward(g, p.mamba.out, inputs, a.mamba.out, d_o, T);
        return mamba_backward(g, arch, p.mamba, visible, a.mamba, a.attn_in, d_out, input_wanted);
    }
    ggml_tensor * d_out = output_backward(g, p.delta.out, inputs, a.delta.out, d_o, T);
    return delta_net_backward(g, arch, p.delta, visible, a.delta, a.attn_in, d_out, input_wanted);
}

// Attention, or what the layer has in its place.
ggml_tensor * mix_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, bool adapter, LayerActivations & a) {
    if (p.conv.weight) return convolve_forward(g, p, inputs, adapter, a);
    if (p.delta.in.weight) return delta_forward(g, arch, p, inputs, adapter, a);
    if (p.mamba.in.weight) return mamba_layer_forward(g, arch, p, inputs, adapter, a);
    return attend_forward(g, arch, p, s, inputs, adapter, a);
}

ggml_tensor * mix_backward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * d_o, bool input_wanted) {
    if (p.conv.weight) return convolve_backward(g, p, inputs, a, d_o, input_wanted);
    if (p.delta.in.weight || p.mamba.in.weight) return state_backward(g, arch, p, inputs, a, d_o, input_wanted);
    return attend_backward(g, arch, p, s, inputs, a, d_o, input_wanted);
}

ggml_tensor * feed_forward(
    Graph & g, const Architecture & arch, const LayerParameters & p, bool adapter, LayerActivations & a) {
    if (p.experts.router.weight) return experts_forward(g, arch, p.experts, a.ffn_in, adapter, a.experts);
    a.up = linear_forward(g, p.up, a.ffn_in, adapter);
    a.gate = linear_forward(g, p.gate, a.ffn_in, adapter);
    a.ffn_mid = gate_forward(g, arch.activation, a.gate, a.up);
    return linear_forward(g, p.down, a.ffn_mid, adapter);
}

// The gradient of ffn_in from that of the feed-forward's result.
ggml_tensor * feed_backward(
    Graph & g, const Architecture & arch, const LayerParameters & p, const LayerActivations & a, ggml_tensor * d_down) {
    if (p.experts.router.weight) return experts_backward(g, arch, p.experts, a.experts, a.ffn_in, d_down);
    ggml_tensor * d_mid = linear_backward(g, p.down, a.ffn_mid, d_down);
    const GateGradient d_ffn = gate_backward(g, arch.activation, a.gate, a.up, d_mid);
    ggml_tensor * d_ffn_in = linear_backward(g, p.gate, a.ffn_in, d_ffn.gate);
    return linear_backward(g, p.up, a.ffn_in, d_ffn.up, {d_ffn_in});
}

}  // namespace

std::vector<ggml_tensor *> LayerActivations::list() const {
    return {attn_in, query_in, q_raw, k_raw, query_gate, attention.q, attention.k, attention.v, attention.out,
        attention.kept, convolution.gates, convolution.conv, convolution.out, delta.mixed, delta.conv, delta.gate,
        delta.alpha, delta.beta, delta.rule, delta.out, mamba.projected, mamba.conv, mamba.rule, mamba.out, attn_raw,
        residual, ffn_in, gate, up, ffn_mid, experts.choice.experts, experts.choice.rows, experts.weights, experts.gate,
        experts.up, experts.mid, ffn_raw};
}

ggml_tensor * layer_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, ggml_tensor * x, bool adapter, LayerActivations & a) {
    ggml_context * c = g.ctx();
    a = {};
    a.attn_in = norm_forward(g, p.attn_norm, x, arch.norm_eps);
    ggml_tensor * mixed = mix_forward(g, arch, p, s, inputs, adapter, a);
    mixed = post_norm_forward(g, p.post_attn_norm, mixed, arch.norm_eps, a.attn_raw);
    a.residual = ggml_add(c, scale_part(g, arch, mixed), pick_wanted(g, inputs, x));

    a.ffn_in = norm_forward(g, p.ffn_norm, a.residual, arch.norm_eps);
    ggml_tensor * ffn =
        post_norm_forward(g, p.post_ffn_norm, feed_forward(g, arch, p, adapter, a), arch.norm_eps, a.ffn_raw);
    return ggml_add(c, scale_part(g, arch, ffn), a.residual);
}

ggml_tensor * layer_backward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & s,
    const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * x, ggml_tensor * dy, bool input_wanted) {
    ggml_context * c = g.ctx();

    // Feed-forward: y = residual + scale * norm(down(act(gate) * up)).
    ggml_tensor * d_down = post_norm_backward(g, p.post_ffn_norm, a.ffn_raw, scale_part(g, arch, dy), arch.norm_eps);
    ggml_tensor * d_ffn_in = feed_backward(g, arch, p, a, d_down);
    ggml_tensor * d_residual = ggml_add(c, dy, norm_backward(g, p.ffn_norm, a.residual, d_ffn_in, arch.norm_eps));

    ggml_tensor * d_o =
        post_norm_backward(g, p.post_attn_norm, a.attn_raw, scale_part(g, arch, d_residual), arch.norm_eps);
    ggml_tensor * d_attn_in = mix_backward(g, arch, p, s, inputs, a, d_o, input_wanted);
    if (!input_wanted) return nullptr;
    return add_wanted(g, inputs, norm_backward(g, p.attn_norm, x, d_attn_in, arch.norm_eps), d_residual);
}

size_t activation_bytes(const Architecture & arch, const BatchShape & s, bool blockwise) {
    const int64_t d = arch.n_embd, q = arch.head_size * arch.n_head, kv = arch.head_size * arch.n_head_kv;
    // The tensors of LayerActivations, plus those that exist only while the layer runs.
    const int64_t attention = blockwise ? arch.n_head : 2 * arch.n_head * s.row_length;
    const LayerWeights & layer = arch.layers.front();
    const int64_t raw = (layer.post_attn_norm ? d : 0) + (layer.post_ffn_norm ? d : 0);
    const int64_t attends = (arch.gates_queries ? 7 : 4) * q + 6 * kv + attention,
                  convolves = arch.conv_taps > 0 ? 12 * d : 0;
    const StateShape & net = arch.state;
    const int64_t outputs = net.values(), channels = 2 * net.keys() + outputs,
                  nets = 5 * channels + 6 * outputs + net.key_size * outputs / StatePlan::kMostTokens;
    // Experts add the rows of their results, or of their inputs' gradients.
    const int64_t feeds =
        layer.experts.router ? arch.experts_used * (3 * layer.experts.gate->ne[1] + d) : 3 * layer.ffn_gate.count;
    const int64_t per_token = raw + 3 * d + std::max({attends, convolves, nets}) + feeds;
    return size_t(per_token) * size_t(s.tokens()) * sizeof(float);
}

}  // namespace cria
