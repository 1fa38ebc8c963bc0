#include "train/delta_net.h"

#include <cmath>

#include "train/causal_convolution.h"
#include "train/linear.h"

namespace cria {

namespace {

float * floats(const ggml_tensor * t) { return static_cast<float *>(t->data); }

DeltaVectors<const float> vectors(const ggml_tensor * t, int axis) {
    return {floats(t), int64_t(t->nb[axis] / sizeof(float))};
}

// Heads [size, N, T] of queries, keys or values [C, T].
ggml_tensor * view_heads(Graph & g, const DeltaShape & s, ggml_tensor * t, int64_t first, int64_t count) {
    return ggml_view_3d(g.ctx(), t, s.size, count, t->ne[1], size_t(s.size) * sizeof(float), t->nb[1],
        size_t(first * s.size) * sizeof(float));
}

// Vectors of length `length`: x / sqrt(sum of squares + epsilon) times it, as llama.cpp computes that.
ggml_tensor * normalize(Graph & g, const Architecture & arch, ggml_tensor * x, float length) {
    const auto n = float(arch.delta.size);
    return ggml_scale(g.ctx(), ggml_rms_norm(g.ctx(), x, arch.norm_eps / n), length / std::sqrt(n));
}

ggml_tensor * normalize_backward(
    Graph & g, const Architecture & arch, ggml_tensor * x, ggml_tensor * dy, float length) {
    const auto n = float(arch.delta.size);
    return ggml_rms_norm_back(g.ctx(), ggml_scale(g.ctx(), dy, length / std::sqrt(n)), x, arch.norm_eps / n);
}

// The rule's inputs. Queries come scaled, by 1 / sqrt(size).
struct RuleInputs {
    ggml_tensor *q_raw, *k_raw;  // [size, K, T], before their norm
    ggml_tensor *q, *k, *v;  // [size, K, T], [size, V, T]; v may be strided
    ggml_tensor *step, *log_decay, *beta;  // [V, T]; log_decay = step * the layer's decay
    float query_length;
};

RuleInputs make_inputs(Graph & g, const Architecture & arch, const DeltaParameters & p, const DeltaState & state) {
    ggml_context * c = g.ctx();
    const DeltaShape & s = arch.delta;
    RuleInputs inputs{};
    inputs.query_length = 1.0f / std::sqrt(float(s.size));
    ggml_tensor * activated = ggml_silu(c, state.conv);
    inputs.q_raw = view_heads(g, s, activated, 0, s.key_heads);
    inputs.k_raw = view_heads(g, s, activated, s.key_heads, s.key_heads);
    inputs.v = view_heads(g, s, activated, 2 * s.key_heads, s.value_heads);
    inputs.q = normalize(g, arch, inputs.q_raw, inputs.query_length);
    inputs.k = normalize(g, arch, inputs.k_raw, 1.0f);
    inputs.step = ggml_softplus(c, state.alpha);
    inputs.log_decay = ggml_mul(c, inputs.step, p.decay.weight);
    inputs.beta = ggml_sigmoid(c, state.beta);
    return inputs;
}

DeltaTensors describe(const ggml_tensor * node) {
    return {vectors(node->src[0], 2), vectors(node->src[1], 2), vectors(node->src[2], 2), vectors(node->src[3], 1),
        vectors(node->src[4], 1)};
}

// The rule's outputs [size, V, T] within its node.
ggml_tensor * view_outputs(Graph & g, const DeltaShape & s, ggml_tensor * rule, int64_t tokens) {
    const size_t head = size_t(s.size) * sizeof(float);
    return ggml_view_3d(g.ctx(), rule, s.size, s.value_heads, tokens, head, head * size_t(s.value_heads), 0);
}

ggml_tensor * as_heads(Graph & g, const DeltaShape & s, ggml_tensor * t) {
    return ggml_reshape_3d(g.ctx(), t, s.size, s.value_heads, t->ne[1]);
}
ggml_tensor * as_columns(Graph & g, ggml_tensor * t) {
    return ggml_reshape_2d(g.ctx(), t, t->ne[0] * t->ne[1], t->ne[2]);
}

// x (1 - x), the slope of a sigmoid with the value x.
ggml_tensor * sigmoid_slope(Graph & g, ggml_tensor * x) { return ggml_sub(g.ctx(), x, ggml_sqr(g.ctx(), x)); }

}  // namespace

ggml_tensor * delta_net_forward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const DeltaInputs & inputs, ggml_tensor * x, bool adapter, DeltaState & state) {
    ggml_context * c = g.ctx();
    const DeltaShape s = arch.delta;
    const DeltaPlan * plan = inputs.plan;
    const int64_t T = x->ne[1], outputs = s.size * s.value_heads * T;
    state.mixed = linear_forward(g, p.in, x, adapter);
    state.gate = linear_forward(g, p.gate, x, adapter);
    state.alpha = linear_forward(g, p.alpha, x, adapter);
    state.beta = linear_forward(g, p.beta, x, adapter);
    state.conv = causal_convolution_forward(g, p.conv, inputs.ancestors, state.mixed);
    const RuleInputs r = make_inputs(g, arch, p, state);
    state.rule =
        g.custom({outputs + s.size * s.size * s.value_heads * plan->states}, {r.q, r.k, r.v, r.log_decay, r.beta},
            [plan, s, outputs](ggml_tensor * node, int thread, int threads, Compute &) {
        run_delta(
            *plan, s, describe(node), {floats(node), s.size * s.value_heads}, floats(node) + outputs, thread, threads);
    });
    ggml_tensor * normed = norm_forward(g, p.norm, view_outputs(g, s, state.rule, T), arch.norm_eps);
    return as_columns(g, ggml_mul(c, normed, as_heads(g, s, ggml_silu(c, state.gate))));
}

ggml_tensor * delta_net_backward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const DeltaInputs & inputs, const DeltaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted) {
    ggml_context * c = g.ctx();
    const DeltaShape s = arch.delta;
    const DeltaPlan * plan = inputs.plan;
    const int64_t T = x->ne[1], channels = s.size * (2 * s.key_heads + s.value_heads),
                  width = channels + 2 * s.value_heads;

    // The gated norm.
    ggml_tensor * outputs = view_outputs(g, s, state.rule, T);
    ggml_tensor * normed = as_columns(g, norm_forward(g, p.norm, outputs, arch.norm_eps));
    ggml_tensor * d_gate = ggml_silu_back(c, ggml_mul(c, d_out, normed), state.gate);
    ggml_tensor * d_normed = as_heads(g, s, ggml_mul(c, d_out, ggml_silu(c, state.gate)));
    ggml_tensor * d_outputs = norm_backward(g, p.norm, outputs, d_normed, arch.norm_eps);

    // The rule: columns of gradients by q, k, v, log_decay and beta, and behind them memory of each thread.
    const RuleInputs r = make_inputs(g, arch, p, state);
    const int64_t scratch = delta_scratch(*plan, s);
    ggml_tensor * all =
        g.custom({width * T + scratch * g.threads()}, {r.q, r.k, r.v, r.log_decay, r.beta, state.rule, d_outputs},
            [plan, s, T, channels, width, scratch](ggml_tensor * node, int thread, int threads, Compute &) {
        const auto part = [&](int64_t first) { return DeltaVectors<float>{floats(node) + first, width}; };
        const int64_t keys = s.size * s.key_heads, outputs = s.size * s.value_heads * T;
        run_delta_gradient(*plan, s, describe(node), floats(node->src[5]) + outputs, vectors(node->src[6], 2),
            {part(0), part(keys), part(2 * keys), part(channels), part(channels + s.value_heads)},
            floats(node) + width * T + scratch * thread, thread, threads);
    });
    const auto heads = [&](int64_t first, int64_t count) {
        return ggml_cont(c, ggml_view_3d(c, all, s.size, count, T, size_t(s.size) * sizeof(float),
                                size_t(width) * sizeof(float), size_t(first * s.size) * sizeof(float)));
    };
    const auto numbers = [&](int64_t first) {
        return ggml_cont(
            c, ggml_view_2d(c, all, s.value_heads, T, size_t(width) * sizeof(float), size_t(first) * sizeof(float)));
    };
    ggml_tensor * d_q = normalize_backward(g, arch, r.q_raw, heads(0, s.key_heads), r.query_length);
    ggml_tensor * d_k = normalize_backward(g, arch, r.k_raw, heads(s.key_heads, s.key_heads), 1.0f);
    ggml_tensor * d_v = heads(2 * s.key_heads, s.value_heads);

    // Decay and correction: log_decay = softplus(alpha) decay, beta by a sigmoid.
    ggml_tensor * d_log_decay = numbers(channels);
    if (p.decay.d_weight)
        g.accumulate(ggml_repeat_back(c, ggml_mul(c, d_log_decay, r.step), p.decay.weight), p.decay.d_weight);
    ggml_tensor * d_alpha = ggml_mul(c, ggml_mul(c, d_log_decay, p.decay.weight), ggml_sigmoid(c, state.alpha));
    ggml_tensor * d_beta = ggml_mul(c, numbers(channels + s.value_heads), sigmoid_slope(g, r.beta));

    ggml_tensor * d_activated = as_columns(g, ggml_concat(c, ggml_concat(c, d_q, d_k, 1), d_v, 1));
    ggml_tensor * d_mixed = causal_convolution_backward(
        g, p.conv, inputs.ancestors, state.mixed, ggml_silu_back(c, d_activated, state.conv));
    ggml_tensor * d_x = linear_backward(g, p.in, x, d_mixed, {nullptr, input_wanted});
    d_x = linear_backward(g, p.gate, x, d_gate, {d_x, input_wanted});
    d_x = linear_backward(g, p.alpha, x, d_alpha, {d_x, input_wanted});
    return linear_backward(g, p.beta, x, d_beta, {d_x, input_wanted});
}

}  // namespace cria
