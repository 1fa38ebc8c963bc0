#include "train/delta_net.h"

#include <cmath>

#include "train/causal_convolution.h"
#include "train/heads.h"
#include "train/linear.h"

namespace cria {

namespace {

// Vectors of length `length`: x / sqrt(sum of squares + epsilon) times it, as llama.cpp computes that.
ggml_tensor * normalize(Graph & g, const Architecture & arch, ggml_tensor * x, float length) {
    const auto n = float(arch.state.key_size);
    return ggml_scale(g.ctx(), ggml_rms_norm(g.ctx(), x, arch.norm_eps / n), length / std::sqrt(n));
}

ggml_tensor * normalize_backward(
    Graph & g, const Architecture & arch, ggml_tensor * x, ggml_tensor * dy, float length) {
    const auto n = float(arch.state.key_size);
    return ggml_rms_norm_back(g.ctx(), ggml_scale(g.ctx(), dy, length / std::sqrt(n)), x, arch.norm_eps / n);
}

struct Prepared {
    ggml_tensor *q_raw, *k_raw;  // [size, K, T], before their norm
    ggml_tensor * step;  // see StateDecay
    StateRule rule;
    float query_length;  // scores are divided by the square root of the size
};

Prepared prepare(Graph & g, const Architecture & arch, const DeltaParameters & p, const DeltaState & state) {
    const StateShape & s = arch.state;
    Prepared prepared{};
    prepared.query_length = 1.0f / std::sqrt(float(s.key_size));
    ggml_tensor * activated = ggml_silu(g.ctx(), state.conv);
    prepared.q_raw = view_heads(g, activated, 0, s.key_size, s.key_heads);
    prepared.k_raw = view_heads(g, activated, s.keys(), s.key_size, s.key_heads);
    const StateDecay decay = make_decay(g, state.alpha, p.decay.weight);
    prepared.step = decay.step;
    prepared.rule = {normalize(g, arch, prepared.q_raw, prepared.query_length),
        normalize(g, arch, prepared.k_raw, 1.0f), view_heads(g, activated, 2 * s.keys(), s.value_size, s.value_heads),
        decay.log_decay, ggml_sigmoid(g.ctx(), state.beta)};
    return prepared;
}

ggml_tensor * as_heads(Graph & g, const StateShape & s, ggml_tensor * t) {
    return ggml_reshape_3d(g.ctx(), t, s.value_size, s.value_heads, t->ne[1]);
}

}  // namespace

ggml_tensor * delta_net_forward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const StateInputs & inputs, ggml_tensor * x, bool adapter, DeltaState & state) {
    ggml_context * c = g.ctx();
    state.mixed = linear_forward(g, p.in, x, adapter);
    state.gate = linear_forward(g, p.gate, x, adapter);
    state.alpha = linear_forward(g, p.alpha, x, adapter);
    state.beta = linear_forward(g, p.beta, x, adapter);
    state.conv = causal_convolution_forward(g, p.conv, inputs.ancestors, state.mixed);
    state.rule = state_rule_forward(g, arch.state, *inputs.plan, prepare(g, arch, p, state).rule);
    ggml_tensor * normed = norm_forward(g, p.norm, view_outputs(g, arch.state, state.rule, x->ne[1]), arch.norm_eps);
    return join_heads(g, ggml_mul(c, normed, as_heads(g, arch.state, ggml_silu(c, state.gate))));
}

ggml_tensor * delta_net_backward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const StateInputs & inputs, const DeltaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted) {
    ggml_context * c = g.ctx();
    // The gated norm.
    ggml_tensor * outputs = view_outputs(g, arch.state, state.rule, x->ne[1]);
    ggml_tensor * normed = join_heads(g, norm_forward(g, p.norm, outputs, arch.norm_eps));
    ggml_tensor * d_gate = ggml_silu_back(c, ggml_mul(c, d_out, normed), state.gate);
    ggml_tensor * d_normed = as_heads(g, arch.state, ggml_mul(c, d_out, ggml_silu(c, state.gate)));
    ggml_tensor * d_outputs = norm_backward(g, p.norm, outputs, d_normed, arch.norm_eps);

    const Prepared r = prepare(g, arch, p, state);
    const StateRule d = state_rule_backward(g, arch.state, *inputs.plan, r.rule, state.rule, d_outputs);
    ggml_tensor * d_q = normalize_backward(g, arch, r.q_raw, d.q, r.query_length);
    ggml_tensor * d_k = normalize_backward(g, arch, r.k_raw, d.k, 1.0f);

    // log_decay = softplus(alpha) decay, and the correction by a sigmoid, whose slope is s (1 - s).
    if (p.decay.d_weight)
        g.accumulate(ggml_repeat_back(c, ggml_mul(c, d.log_decay, r.step), p.decay.weight), p.decay.d_weight);
    ggml_tensor * d_alpha = ggml_mul(c, ggml_mul(c, d.log_decay, p.decay.weight), ggml_sigmoid(c, state.alpha));
    ggml_tensor * d_beta = ggml_mul(c, d.beta, ggml_sub(c, r.rule.beta, ggml_sqr(c, r.rule.beta)));

    ggml_tensor * d_activated = join_heads(g, ggml_concat(c, ggml_concat(c, d_q, d_k, 1), d.v, 1));
    ggml_tensor * d_mixed = causal_convolution_backward(
        g, p.conv, inputs.ancestors, state.mixed, ggml_silu_back(c, d_activated, state.conv));
    ggml_tensor * d_x = linear_backward(g, p.in, x, d_mixed, {nullptr, input_wanted});
    d_x = linear_backward(g, p.gate, x, d_gate, {d_x, input_wanted});
    d_x = linear_backward(g, p.alpha, x, d_alpha, {d_x, input_wanted});
    return linear_backward(g, p.beta, x, d_beta, {d_x, input_wanted});
}

}  // namespace cria
