#include "train/mamba.h"

#include "train/causal_convolution.h"
#include "train/gate.h"
#include "train/heads.h"
#include "train/linear.h"

namespace cria {

namespace {

// Rows of columns, contiguous.
ggml_tensor * copy_rows(Graph & g, ggml_tensor * t, int64_t first, int64_t count) {
    ggml_tensor * view = ggml_view_2d(g.ctx(), t, count, t->ne[1], t->nb[1], size_t(first) * sizeof(float));
    return ggml_cont(g.ctx(), view);
}

// Numbers of the heads [1, V] as [V].
ggml_tensor * as_column(Graph & g, const Vector & numbers) {
    return ggml_reshape_1d(g.ctx(), numbers.weight, ggml_nelements(numbers.weight));
}

struct RuleInputs {
    ggml_tensor * alpha;  // [V, T], before softplus
    StateDecay decay;
    StateRule rule;
};

RuleInputs prepare_rule(Graph & g, const Architecture & arch, const MambaParameters & p, const MambaState & state) {
    const StateShape & s = arch.state;
    const int64_t D = s.values(), C = D + 2 * s.keys();
    ggml_tensor * alpha = ggml_add(g.ctx(), copy_rows(g, state.projected, D + C, s.value_heads), p.step_bias.weight);
    const StateDecay decay = make_decay(g, alpha, as_column(g, p.rate));
    ggml_tensor * activated = ggml_silu(g.ctx(), state.conv);
    const auto heads = [&](int64_t first, int64_t size, int64_t count) {
        return view_heads(g, activated, first, size, count);
    };
    return {alpha, decay,
        {heads(D + s.keys(), s.key_size, s.key_heads), heads(D, s.key_size, s.key_heads),
            heads(0, s.value_size, s.value_heads), decay.log_decay, decay.step}};
}

struct Gated {
    ggml_tensor * gate;  // before SiLU [D, T]
    ggml_tensor * outputs;  // of the rule, and the values themselves times `skip` [D, T]
    ggml_tensor * gated;  // [D / groups, groups, T]
};

// `values` are those of the rule [value_size, V, T].
Gated gate_outputs(
    Graph & g, const Architecture & arch, const MambaParameters & p, const MambaState & state, ggml_tensor * values) {
    ggml_context * c = g.ctx();
    const StateShape & s = arch.state;
    ggml_tensor * gate = copy_rows(g, state.projected, 0, s.values());
    ggml_tensor * skipped = ggml_mul(c, ggml_cont(c, values), p.skip.weight);
    ggml_tensor * outputs = join_heads(g, ggml_add(c, skipped, view_outputs(g, s, state.rule, values->ne[2])));
    ggml_tensor * gated = gate_forward(g, Activation::silu, gate, outputs);
    return {gate, outputs, ggml_reshape_3d(c, gated, s.values() / s.key_heads, s.key_heads, gated->ne[1])};
}

}  // namespace

ggml_tensor * mamba_forward(Graph & g, const Architecture & arch, const MambaParameters & p, const StateInputs & inputs,
    ggml_tensor * x, bool adapter, MambaState & state) {
    const StateShape & s = arch.state;
    state.projected = linear_forward(g, p.in, x, adapter);
    ggml_tensor * mixed = copy_rows(g, state.projected, s.values(), s.values() + 2 * s.keys());
    state.conv = ggml_add(g.ctx(), causal_convolution_forward(g, p.conv, inputs.ancestors, mixed), p.conv_bias.weight);
    const StateRule rule = prepare_rule(g, arch, p, state).rule;
    state.rule = state_rule_forward(g, s, *inputs.plan, rule);
    return join_heads(g, norm_forward(g, p.norm, gate_outputs(g, arch, p, state, rule.v).gated, arch.norm_eps));
}

ggml_tensor * mamba_backward(Graph & g, const Architecture & arch, const MambaParameters & p,
    const StateInputs & inputs, const MambaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted) {
    ggml_context * c = g.ctx();
    const StateShape & s = arch.state;
    const RuleInputs r = prepare_rule(g, arch, p, state);
    const Gated out = gate_outputs(g, arch, p, state, r.rule.v);
    const auto sum = [&](ggml_tensor * value, const Vector & like) {
        if (like.d_weight) g.accumulate(ggml_repeat_back(c, value, like.weight), like.d_weight);
    };

    // The norm, the gate, and the values that skip the rule.
    ggml_tensor * d_normed = ggml_reshape_3d(c, d_out, out.gated->ne[0], out.gated->ne[1], out.gated->ne[2]);
    ggml_tensor * d_gated = join_heads(g, norm_backward(g, p.norm, out.gated, d_normed, arch.norm_eps));
    const GateGradient d_gate = gate_backward(g, Activation::silu, out.gate, out.outputs, d_gated);
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
        ggml_concat(c, ggml_concat(c, join_heads(g, d_v), join_heads(g, d.k), 0), join_heads(g, d.q), 0);
    ggml_tensor * d_conv = ggml_silu_back(c, d_activated, state.conv);
    sum(d_conv, p.conv_bias);
    ggml_tensor * mixed = copy_rows(g, state.projected, s.values(), d_conv->ne[0]);
    ggml_tensor * d_mixed = causal_convolution_backward(g, p.conv, inputs.ancestors, mixed, d_conv);
    ggml_tensor * d_projected = ggml_concat(c, ggml_concat(c, ggml_cont(c, d_gate.gate), d_mixed, 0), d_alpha, 0);
    return linear_backward(g, p.in, x, d_projected, {nullptr, input_wanted});
}

}  // namespace cria
