#include "train/mamba.h"

#include "train/causal_convolution.h"
#include "train/gate.h"
#include "train/linear.h"

namespace cria {

namespace {

// Rows of columns, contiguous.
ggml_tensor * copy_rows(Graph & g, ggml_tensor * t, int64_t first, int64_t count) {
    ggml_tensor * view = ggml_view_2d(g.ctx(), t, count, t->ne[1], t->nb[1], size_t(first) * sizeof(float));
    return ggml_cont(g.ctx(), view);
}

ggml_tensor * view_heads(Graph & g, ggml_tensor * t, int64_t first, int64_t size, int64_t count) {
    return ggml_view_3d(
        g.ctx(), t, size, count, t->ne[1], size_t(size) * sizeof(float), t->nb[1], size_t(first) * sizeof(float));
}

ggml_tensor * as_columns(Graph & g, ggml_tensor * t) {
    return ggml_reshape_2d(g.ctx(), t, t->ne[0] * t->ne[1], t->ne[2]);
}

// One number of each head [1, V], as a column or as axis 1 of heads.
ggml_tensor * as_column(Graph & g, const Vector & numbers) {
    return ggml_reshape_1d(g.ctx(), numbers.weight, ggml_nelements(numbers.weight));
}

struct Prepared {
    ggml_tensor *gate, *alpha;  // [D, T], [V, T], before SiLU and softplus
    StateDecay decay;
    StateRule rule;
    ggml_tensor * outputs;  // of the rule, and the values themselves times `skip` [D, T]; null before the rule
    ggml_tensor * gated;  // [D / groups, groups, T]; the same
};

Prepared prepare(Graph & g, const Architecture & arch, const MambaParameters & p, const MambaState & state) {
    ggml_context * c = g.ctx();
    const StateShape & s = arch.state;
    const int64_t D = s.values(), C = D + 2 * s.keys();
    Prepared r{};
    r.gate = copy_rows(g, state.projected, 0, D);
    r.alpha = ggml_add(c, copy_rows(g, state.projected, D + C, s.value_heads), p.step_bias.weight);
    r.decay = make_decay(g, r.alpha, as_column(g, p.rate));
    ggml_tensor * activated = ggml_silu(c, state.conv);
    r.rule = {view_heads(g, activated, D + s.keys(), s.key_size, s.key_heads),
        view_heads(g, activated, D, s.key_size, s.key_heads), view_heads(g, activated, 0, s.value_size, s.value_heads),
        r.decay.log_decay, r.decay.step};
    if (!state.rule) return r;
    ggml_tensor * skipped = ggml_mul(c, ggml_cont(c, r.rule.v), p.skip.weight);
    r.outputs = as_columns(g, ggml_add(c, skipped, view_outputs(g, s, state.rule, state.projected->ne[1])));
    ggml_tensor * gated = gate_forward(g, Activation::silu, r.gate, r.outputs);
    r.gated = ggml_reshape_3d(c, gated, D / s.key_heads, s.key_heads, gated->ne[1]);
    return r;
}

}  // namespace

ggml_tensor * mamba_forward(Graph & g, const Architecture & arch, const MambaParameters & p, const StateInputs & inputs,
    ggml_tensor * x, bool adapter, MambaState & state) {
    const StateShape & s = arch.state;
    state.projected = linear_forward(g, p.in, x, adapter);
    ggml_tensor * mixed = copy_rows(g, state.projected, s.values(), s.values() + 2 * s.keys());
    state.conv = ggml_add(g.ctx(), causal_convolution_forward(g, p.conv, inputs.ancestors, mixed), p.conv_bias.weight);
    state.rule = nullptr;
    state.rule = state_rule_forward(g, s, *inputs.plan, prepare(g, arch, p, state).rule);
    return as_columns(g, norm_forward(g, p.norm, prepare(g, arch, p, state).gated, arch.norm_eps));
}

ggml_tensor * mamba_backward(Graph & g, const Architecture & arch, const MambaParameters & p,
    const StateInputs & inputs, const MambaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted) {
    ggml_context * c = g.ctx();
    const StateShape & s = arch.state;
    const Prepared r = prepare(g, arch, p, state);
    const auto sum = [&](ggml_tensor * value, const Vector & like) {
        if (like.d_weight) g.accumulate(ggml_repeat_back(c, value, like.weight), like.d_weight);
    };

    // The norm, the gate, and the values that skip the rule.
    ggml_tensor * d_normed = ggml_reshape_3d(c, d_out, r.gated->ne[0], r.gated->ne[1], r.gated->ne[2]);
    ggml_tensor * d_gated = as_columns(g, norm_backward(g, p.norm, r.gated, d_normed, arch.norm_eps));
    const GateGradient d_gate = gate_backward(g, Activation::silu, r.gate, r.outputs, d_gated);
    ggml_tensor * d_outputs = ggml_reshape_3d(c, ggml_cont(c, d_gate.up), s.value_size, s.value_heads, x->ne[1]);
    sum(ggml_mul(c, d_outputs, r.rule.v), p.skip);

    const StateRule d = state_rule_backward(g, s, *inputs.plan, r.rule, state.rule, d_outputs);
    ggml_tensor * d_v = ggml_add(c, d.v, ggml_mul(c, d_outputs, p.skip.weight));

    // A step scales what is added (beta) and, times the rate, is the decay's logarithm.
    if (p.rate.d_weight) {
        ggml_tensor * d_rate = ggml_repeat_back(c, ggml_mul(c, d.log_decay, r.decay.step), as_column(g, p.rate));
        g.accumulate(ggml_reshape_2d(c, d_rate, 1, s.value_heads), p.rate.d_weight);
    }
    ggml_tensor * d_step = ggml_add(c, d.beta, ggml_mul(c, d.log_decay, as_column(g, p.rate)));
    ggml_tensor * d_alpha = ggml_mul(c, d_step, ggml_sigmoid(c, r.alpha));
    sum(d_alpha, p.step_bias);

    ggml_tensor * d_activated =
        ggml_concat(c, ggml_concat(c, as_columns(g, d_v), as_columns(g, d.k), 0), as_columns(g, d.q), 0);
    ggml_tensor * d_conv = ggml_silu_back(c, d_activated, state.conv);
    sum(d_conv, p.conv_bias);
    ggml_tensor * mixed = copy_rows(g, state.projected, s.values(), d_conv->ne[0]);
    ggml_tensor * d_mixed = causal_convolution_backward(g, p.conv, inputs.ancestors, mixed, d_conv);
    ggml_tensor * d_projected = ggml_concat(c, ggml_concat(c, ggml_cont(c, d_gate.gate), d_mixed, 0), d_alpha, 0);
    return linear_backward(g, p.in, x, d_projected, {nullptr, input_wanted});
}

}  // namespace cria
