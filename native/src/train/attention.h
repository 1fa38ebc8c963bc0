// Attention as a node of the training graph: our own code on the CPU, our own kernels on a device that has them,
// products and softmax of ggml elsewhere.
#pragma once

#include "architecture.h"
#include "cpu/attention.h"
#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

// S tokens in each of B rows; T = S * B. Heads: H query heads in KV groups of G = H / KV; D is the head size.
struct BatchShape {
    int64_t row_length, rows;
    int64_t tokens() const { return row_length * rows; }
};

// Visibility between tokens: on the CPU the plan; for kernels the ends of MicroBatch, [T] I32; elsewhere the mask [S,
// S, 1, 1 or B], 0 or -inf.
struct AttentionInputs {
    const AttentionPlan * plan;
    ggml_tensor * ends;
    ggml_tensor * mask;
};

// Whether attention is computed block by block, without a matrix of S x S.
bool is_blockwise(const Compute & compute, const Architecture & arch);

// Results of the forward pass for the backward pass. If the plan has fewer queries than tokens, tensors of queries have
// Q columns instead of T.
struct AttentionState {
    ggml_tensor *q, *k, *v;  // [D*H, T], [D*KV, T], [D*KV, T]
    ggml_tensor * out;  // [D*H, T]; a view of `kept` when blockwise
    // Blockwise: [D*H + H, T], outputs and the log-sums of their rows; else the probabilities [S, S*G, KV, B].
    ggml_tensor * kept;
};

// Fills state.out and state.kept from q, k and v, after RoPE. `sinks` [H] may have no weight; on the CPU only, they may
// have one: each is a further logit of its head's softmax, without a value (arXiv:2309.17453).
void attention_forward(Graph & g, const Architecture & arch, const BatchShape & shape, const AttentionInputs & inputs,
    const Vector & sinks, AttentionState & state);

struct AttentionGradient {
    ggml_tensor *q, *k, *v;  // of the shapes above; columns may be strided
};

// Adds the gradient of the sinks, where they are trained.
AttentionGradient attention_backward(Graph & g, const Architecture & arch, const BatchShape & shape,
    const AttentionInputs & inputs, const Vector & sinks, const AttentionState & state, ggml_tensor * d_out);

}  // namespace cria
