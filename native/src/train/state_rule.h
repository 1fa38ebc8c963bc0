// The rule of layers with a state (cpu/state_rule.h) as nodes of the training graph.
#pragma once

#include "cpu/state_rule.h"
#include "train/compute.h"

namespace cria {

// Axis 0 is contiguous, the others may be strided.
struct StateRule {
    ggml_tensor *q, *k;  // [key_size, key_heads, T]
    ggml_tensor * v;  // [value_size, value_heads, T]
    ggml_tensor *log_decay, *beta;  // [value_heads, T]
};

// The order of the tokens: each continues the state of another one, or none.
struct StateInputs {
    const StatePlan * plan;
    ggml_tensor * ancestors;  // see causal_convolution.h
};

// One node [1D] with the outputs and, behind them, the states that the gradient needs.
ggml_tensor * state_rule_forward(Graph & g, const StateShape & shape, const StatePlan & plan, const StateRule & rule);

// The outputs [value_size, value_heads, T] of such a node.
ggml_tensor * view_outputs(Graph & g, const StateShape & shape, ggml_tensor * node, int64_t tokens);

// The gradients, contiguous, from those of the outputs [value_size, value_heads, T].
StateRule state_rule_backward(Graph & g, const StateShape & shape, const StatePlan & plan, const StateRule & rule,
    ggml_tensor * node, ggml_tensor * d_outputs);

// The decay's and the correction's numbers of each head and token: log_decay = softplus(alpha) rate.
struct StateDecay {
    ggml_tensor *step, *log_decay;  // [value_heads, T]
};
StateDecay make_decay(Graph & g, ggml_tensor * alpha, ggml_tensor * rate);

}  // namespace cria
