#include "trainable_architectures.h"

#include <cmath>
#include <cstdlib>

namespace cria {

namespace {

void scale_queries_first(Architecture & a) {
    a.query_scale = a.attention_scale;
    a.attention_scale = 1.0f;
}

// Gemma 3's text models. Its norms' weights are 1 + w in the file already.
const char * describe_gemma3(const llama_model & model, Architecture & a) {
    if (model.hparams.f_final_logit_softcapping != 0.0f) return "soft-capped logits";
    a.embedding_scale = std::sqrt(float(a.n_embd));
    scale_queries_first(a);
    a.activation = Activation::gelu;
    return nullptr;
}

// llama with layers that have no RoPE. The file does not say which: llama.cpp leaves it out of every fourth.
const char * describe_smollm3(const llama_model & model, Architecture & a) {
    a.no_rope_step = model.hparams.n_no_rope_layer_step;
    return nullptr;
}

// llama with scales from the file; that of attention is one of the hyper-parameters of all architectures.
const char * describe_granite(const llama_model & model, Architecture & a) {
    if (model.hparams.n_deepstack_layers > 0) return "images' vectors that are added in chosen layers";
    if (!(model.hparams.f_logit_scale > 0.0f)) return "a logit_scale that is not positive";
    a.logit_divisor = model.hparams.f_logit_scale;
    if (model.hparams.f_embedding_scale != 0.0f) a.embedding_scale = a.vector_scale = model.hparams.f_embedding_scale;
    if (model.hparams.f_residual_scale != 0.0f) a.residual_scale = model.hparams.f_residual_scale;
    return nullptr;
}

// Layers without keys and values have a short convolution in place of attention.
const char * describe_lfm2(const llama_model & model, Architecture & a) {
    if (!model.hparams.causal_attn) return "convolutions that see later tokens";
    if (a.window > 0) return "windows of attention beside convolutions";
    a.output_norm_name = "token_embd_norm.weight";
    return nullptr;
}

// The part of the states that is not modelled, or null.
const char * check_states(const llama_model & model, const StateShape & s) {
    const auto & hp = model.hparams;
    if (s.key_heads <= 0 || s.value_heads <= 0 || s.value_heads % s.key_heads != 0 ||
        int64_t(hp.ssm_d_inner) != s.values())
        return "states of other shapes";
    if (s.key_size % 4 != 0 || s.key_size > StateShape::kMostSize || s.value_size > StateShape::kMostSize)
        return "states whose size is no multiple of 4, or above 256";
    return nullptr;
}

// Layers without keys and values have a gated delta net in place of attention, and the others gate what attention
// gives.
const char * describe_qwen35(const llama_model & model, Architecture & a) {
    const auto & hp = model.hparams;
    a.state = {hp.ssm_d_state, hp.ssm_d_state, hp.ssm_n_group, hp.ssm_dt_rank, true, true};
    a.gates_queries = true;
    a.ffn_norm_name = "post_attention_norm.weight";
    return check_states(model, a.state);
}

// granite with Mamba-2's layers where a layer has no keys and values.
const char * describe_granite_hybrid(const llama_model & model, Architecture & a) {
    const auto & hp = model.hparams;
    if (hp.ssm_dt_rank == 0 || hp.ssm_d_inner % hp.ssm_dt_rank != 0) return "states of other shapes";
    a.state = {hp.ssm_d_state, hp.ssm_d_inner / hp.ssm_dt_rank, hp.ssm_n_group, hp.ssm_dt_rank, false, false};
    if (const char * problem = describe_granite(model, a)) return problem;
    return check_states(model, a.state);
}

// qwen3 with experts, or what every mixture of experts has.
const char * describe_experts(const llama_model & model, Architecture & a) {
    const auto & hp = model.hparams;
    if (hp.n_expert_groups > 1) return "groups of experts";
    a.experts_used = hp.n_expert_used();
    for (uint32_t il = 0; il < hp.n_layer(); il++)
        if (hp.n_expert_used(il) != hp.n_expert_used()) return "numbers of experts that differ by layer";
    if (hp.n_expert_used() < 1 || hp.n_expert_used() > hp.n_expert) return "more experts for a token than there are";
    return nullptr;
}

// Experts with biases, behind attention with sinks, whose windows, in every other layer, are hyper-parameters of all
// architectures as YaRN's numbers are.
const char * describe_gpt_oss(const llama_model & model, Architecture & a) {
    if (a.rope_dims != a.head_size) return "heads that RoPE turns in part";
    a.ffn_norm_name = "post_attention_norm.weight";
    a.activation = Activation::clamped_silu;
    a.gating = ExpertGating::softmax_of_chosen;
    return describe_experts(model, a);
}

// Attention's and the feed-forward's input matrices are one tensor each. llama.cpp leaves the sliding window out.
const char * describe_phi3(const llama_model & model, Architecture & a) {
    char text[32];
    if (llama_model_meta_val_str(&model, "phi3.attention.sliding_window", text, sizeof text) > 0)
        a.ignored_window = std::strtoll(text, nullptr, 10);
    scale_queries_first(a);
    return nullptr;
}

// llama whose queries grow with their position, beyond the original context (Llama 4's scale of the temperature).
const char * describe_mistral3(const llama_model & model, Architecture & a) {
    a.query_growth = model.hparams.f_attn_temp_scale;
    a.query_step = model.hparams.n_attn_temp_floor_scale;
    return nullptr;
}

}  // namespace

const std::vector<TrainableArchitecture> & trainable_architectures() {
    static const std::vector<TrainableArchitecture> list = {
        {"llama", nullptr},
        {"qwen2", nullptr},
        {"qwen3", nullptr},
        {"qwen2vl", nullptr},
        {"qwen3vl", nullptr},
        {"gemma3", describe_gemma3},
        {"smollm3", describe_smollm3},
        {"granite", describe_granite},
        {"lfm2", describe_lfm2},
        {"phi3", describe_phi3},
        {"mistral3", describe_mistral3},
        {"qwen35", describe_qwen35},
        {"granitehybrid", describe_granite_hybrid},
        {"qwen3moe", describe_experts},
        {"gpt-oss", describe_gpt_oss},
    };
    return list;
}

}  // namespace cria
