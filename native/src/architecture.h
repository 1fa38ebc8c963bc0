// The shapes and the weights by role of a model, as the training graph needs them.
// Collected once. A feature that the graph does not implement is refused here, by name.
#pragma once

#include <string>
#include <vector>

#include "cpu/state_rule.h"
#include "cria/model.h"
#include "ggml.h"

struct llama_model;

namespace cria {

// A feed-forward block's gate. silu, gelu: act(gate) * up, GELU in its form with tanh. clamped_silu: gpt-oss's, with x
// = min(gate, 7) and y = up within -7 and 7, x sigmoid(1.702 x) (y + 1) (arXiv:2508.10925, section 2.1).
enum class Activation { silu, gelu, clamped_silu };

// The weights of a token's experts: their part of the softmax over all experts, divided by their sum, or the softmax
// over the logits of the chosen ones. Both are the same numbers, but for rounding.
enum class ExpertGating { divided_softmax, softmax_of_chosen };

// Mathematics that may differ by layer.
struct LayerMath {
    bool has_rope;
    float rope_base, rope_scale;
    int64_t window;  // most tokens that a token sees, itself included; 0: all before it
};

// A matrix, or some rows of one that holds several in one tensor.
struct WeightRows {
    ggml_tensor * tensor = nullptr;  // null: the layer has no such weight
    int64_t begin = 0, count = 0;
};

// A gated delta net in place of attention (arXiv:2412.06464). D = value_size value_heads, C = D + 2 key_size key_heads.
struct DeltaWeights {
    ggml_tensor * in;  // [d, C], of queries, keys and values; null: the layer has no delta net
    ggml_tensor * conv;  // [taps, C], the last for the token itself
    ggml_tensor *gate, *out;  // [d, D], [D, d]
    ggml_tensor *alpha, *alpha_bias, *beta;  // of the decay [d, value_heads], [value_heads], of the correction
    ggml_tensor * decay;  // [value_heads]
    ggml_tensor * norm;  // [size]
};

// Mamba-2's layer in place of attention (arXiv:2405.21060). D = value_size value_heads, C = D + 2 key_size key_heads.
struct MambaWeights {
    ggml_tensor * in;  // [d, D + C + value_heads], of gate, convolution and steps; null: the layer has none
    ggml_tensor *conv, *conv_bias;  // [taps, C], the last for the token itself; [C]
    ggml_tensor *step_bias, *rate, *skip;  // [value_heads], [1, value_heads], [1, value_heads]
    ggml_tensor * norm;  // [D / key_heads, key_heads]
    ggml_tensor * out;  // [D, d]
};

// A mixture of experts in place of the feed-forward's matrices.
struct ExpertWeights {
    ggml_tensor * router;  // [d, experts]; null: the layer has no experts
    ggml_tensor *gate, *up;  // [d, ff, experts]
    ggml_tensor * down;  // [ff, d, experts]
    ggml_tensor * router_bias;  // [experts], or null
    ggml_tensor *gate_bias, *up_bias, *down_bias;  // [ff, experts], [ff, experts], [d, experts], or null
};

struct LayerWeights {
    ggml_tensor * attn_norm;  // [d], of attention's or the convolution's input
    WeightRows wq, wk, wv;  // [d, heads*hd] (twice with gates), [d, kv*hd], [d, kv*hd]
    ggml_tensor * wo;  // [heads*hd, d]
    ggml_tensor *bq, *bk, *bv, *bo;  // or null
    // [heads], a logit that each head's softmax counts beside those of its keys (arXiv:2309.17453), or null.
    ggml_tensor * sinks;
    ggml_tensor *q_norm, *k_norm;  // [hd], or null
    // A gated short convolution in place of attention, whose weights are then null; else null.
    ggml_tensor *conv, *conv_in, *conv_out;  // [taps, d], the last for the token itself; [d, 3d], [d, d]
    DeltaWeights delta;
    MambaWeights mamba;
    ggml_tensor *post_attn_norm, *post_ffn_norm;  // [d], of what attention and feed-forward add, or null
    ggml_tensor * ffn_norm;  // [d]
    WeightRows ffn_gate, ffn_up;  // [d, ff]
    ggml_tensor * ffn_down;  // [ff, d]
    ExpertWeights experts;
    LayerMath math;
};

struct Architecture {
    std::string name;
    int64_t n_embd, n_layer, n_head, n_head_kv, head_size, n_vocab;
    float norm_eps;
    float attention_scale;  // of scores
    float query_scale = 1.0f;  // of queries: what llama.cpp scales in their place, rounded there
    float embedding_scale = 1.0f;  // of tokens
    float vector_scale = 1.0f;
    float residual_scale = 1.0f;  // of what attention and feed-forward add
    float logit_divisor = 1.0f;
    Activation activation = Activation::silu;
    int64_t window = 0;  // of the layers that have one; 0: none has
    int64_t ignored_window = 0;  // of the file, which llama.cpp leaves out; 0: none
    int64_t conv_taps = 0;  // tokens that a short convolution sees, the token itself included; 0: no layer has one
    StateShape state{};  // of layers with a state in place of attention; no heads: no layer has one
    int64_t experts_used = 0;  // of each token; 0: no layer has experts
    ExpertGating gating = ExpertGating::divided_softmax;
    bool gates_queries = false;  // behind each head's queries, wq has a gate of its output
    int64_t no_rope_step = 0;  // each layer whose number, counted from 1, this divides has no RoPE; 0: all have it
    // A query at position p is multiplied by 1 + query_growth * ln(1 + floor(p / query_step)); 0: none is.
    float query_growth = 0.0f;
    uint32_t query_step = 0;
    // RoPE, as llama_context derives it from the file when no option overrides it.
    int rope_type, rope_dims, rope_context;
    // ggml_rope_ext's parameters: the share of YaRN's interpolation, a factor of the rotated values, and YaRN's bounds.
    float ext_factor, attn_factor, beta_fast, beta_slow;
    // Number of dimension pairs that each of the four positions turns (M-RoPE); all 0 for plain positions.
    int rope_sections[4];
    ggml_tensor * rope_factors;  // [rope_dims / 2], of Llama 3 or LongRoPE, else null
    ggml_tensor *token_embd, *output_norm, *output;  // output == token_embd when tied
    const char * output_norm_name = "output_norm.weight";
    const char * ffn_norm_name = "ffn_norm.weight";
    std::vector<LayerWeights> layers;
    // An image's vector has this many additional parts, added to the outputs of the first layers (DeepStack,
    // arXiv:2406.04334).
    int64_t n_deepstack;
    bool has_grids() const { return rope_sections[0] > 0 || rope_sections[1] > 0 || rope_sections[2] > 0; }
};

// Throws Error("unsupported-architecture" | "unsupported-type" | "unsupported-tensor").
Architecture describe_architecture(llama_model * model, const std::vector<Weight> & weights, const std::string & path);

// Throws Error("unsupported-architecture") unless the file's general.architecture can be trained.
void check_trainable_architecture(const std::string & name, const std::string & path);

}  // namespace cria
