// One transformer block of the architectures that train: forward, and its hand-written vector-Jacobian product.
// Hand-written rather than by ggml's autodiff, because the gradients of grouped K and V are then plain batched
// products, the backward pass is one short graph per layer, and nothing unused is computed.
#pragma once

#include "architecture.h"
#include "train/attention.h"
#include "train/compute.h"
#include "train/delta_net.h"
#include "train/experts.h"
#include "train/mamba.h"
#include "train/parameters.h"
#include "train/short_convolution.h"

namespace cria {

// Inputs that every layer shares.
struct LayerInputs {
    ggml_tensor * positions;  // [T] I32; with rows and columns of images [4T], one dimension after the other
    AttentionInputs attention;  // which tokens see each other
    ggml_tensor * query_scales = nullptr;  // [1, 1, Q], factors of the queries; null: they have none
    ggml_tensor * ancestors = nullptr;  // [T, taps - 1] I32, as find_ancestors gives them; null without convolutions
    const StatePlan * state_plan = nullptr;  // of layers with a state
    // For the last layer, if only some tokens' outputs are read: these tokens [Q] I32, ascending, and their positions.
    // Queries, their attention and the feed-forward are then computed only for them. Else null, and Q = T.
    ggml_tensor *wanted = nullptr, *wanted_positions = nullptr;
};

// Inputs of the backward pass, in addition to the layer's input x [d, T].
struct LayerActivations {
    ggml_tensor * attn_in;  // normed x [d, T], the input of attention, or of what stands in its place
    ggml_tensor * query_in;  // of the queries [d, Q] (null without attention)
    ggml_tensor *q_raw, *k_raw;  // [D, H, Q], [D, KV, T], before their norm (null without one)
    ggml_tensor * query_gate;  // [D*H, Q], of what attention gives, before its sigmoid (null without one)
    AttentionState attention;  // q and k after RoPE; `out` is the input of the output projection, or of its gate
    ConvolutionState convolution;  // of a layer with one; attention's parts are then null
    DeltaState delta;  // likewise
    MambaState mamba;  // likewise
    ggml_tensor * attn_raw;  // the output projection's result [d, Q], before its norm (null without one)
    ggml_tensor * residual;  // x + attention, or what stands in its place [d, Q]
    ggml_tensor * ffn_in;  // normed residual [d, Q]
    ggml_tensor *gate, *up, *ffn_mid;  // [ff, Q] (null with experts)
    ExpertState experts;
    ggml_tensor * ffn_raw;  // the feed-forward's result [d, Q], before its norm (null without one)
    std::vector<ggml_tensor *> list() const;
};

// Adds the block to the graph; returns its output [d, Q] and fills `activations`.
ggml_tensor * layer_forward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & shape,
    const LayerInputs & inputs, ggml_tensor * x, bool adapter, LayerActivations & activations);

// Accumulates parameter gradients; returns dx [d, T] from dy [d, Q], or null when dx is not wanted (parts that only dx
// needs are then left out). `a` must be leaves of this graph.
ggml_tensor * layer_backward(Graph & g, const Architecture & arch, const LayerParameters & p, const BatchShape & shape,
    const LayerInputs & inputs, const LayerActivations & a, ggml_tensor * x, ggml_tensor * dy, bool input_wanted);

// Bytes of one layer's activations.
size_t activation_bytes(const Architecture & arch, const BatchShape & shape, bool blockwise);

}  // namespace cria
