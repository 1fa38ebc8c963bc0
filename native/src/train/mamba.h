// Mamba-2's layer, which Granite's hybrid models have in place of attention, up to its output projection, and its
// gradient (arXiv:2405.21060): a short convolution, a state that decays, a gate and a norm.
#pragma once

#include "architecture.h"
#include "train/compute.h"
#include "train/parameters.h"
#include "train/state_rule.h"

namespace cria {

// D = value_size value_heads, C = D + 2 key_size key_heads, V = value_heads.
struct MambaState {
    ggml_tensor * projected;  // gate, input of the convolution, and steps, one behind the other [D + C + V, T]
    ggml_tensor * conv;  // values, keys and queries before SiLU [C, T]
    ggml_tensor * rule;  // the rule's outputs [D, T], and its states behind them
    ggml_tensor * out;  // the input of the output projection [D, Q]
};

// Returns the normed outputs [D, T] of x [d, T]; fills all of `state` but `out`.
ggml_tensor * mamba_forward(Graph & g, const Architecture & arch, const MambaParameters & p, const StateInputs & inputs,
    ggml_tensor * x, bool adapter, MambaState & state);

// Adds the parameters' gradients; returns that of x from d_out [D, T], or null when it is not wanted.
ggml_tensor * mamba_backward(Graph & g, const Architecture & arch, const MambaParameters & p,
    const StateInputs & inputs, const MambaState & state, ggml_tensor * x, ggml_tensor * d_out, bool input_wanted);

}  // namespace cria
