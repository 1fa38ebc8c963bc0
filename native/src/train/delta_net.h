// The gated delta net that some layers of Qwen3.5 have in place of attention, up to its output projection, and its
// gradient (arXiv:2412.06464): queries, keys and values by a short convolution, the delta rule, a norm and a gate.
#pragma once

#include "architecture.h"
#include "train/compute.h"
#include "train/parameters.h"
#include "train/state_rule.h"

namespace cria {

// C = key_size 2 key_heads + D, D = value_size value_heads, V = value_heads.
struct DeltaState {
    ggml_tensor * mixed;  // queries, keys and values, before the convolution [C, T]
    ggml_tensor * conv;  // behind it, before SiLU [C, T]
    ggml_tensor * gate;  // [D, T], before SiLU
    ggml_tensor *alpha, *beta;  // of decay and correction [V, T], before their functions
    ggml_tensor * rule;  // the rule's outputs [D, T], and its states behind them
    ggml_tensor * out;  // the input of the output projection [D, Q]
};

// Returns the gated outputs [D, T] of x [d, T]; fills all of `state` but `out`.
ggml_tensor * delta_net_forward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const StateInputs & inputs, ggml_tensor * x, bool adapter, DeltaState & state);

// Adds the parameters' gradients; returns that of x from d_out [D, T], or null when it is not wanted.
ggml_tensor * delta_net_backward(Graph & g, const Architecture & arch, const DeltaParameters & p,
    const StateInputs & inputs, const DeltaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted);

}  // namespace cria
