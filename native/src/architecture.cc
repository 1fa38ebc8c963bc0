#include "architecture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cria/error.h"
#include "llama-model.h"
#include "trainable_architectures.h"

namespace cria {

std::vector<std::string> list_trainable_architectures() {
    std::vector<std::string> names;
    for (const auto & known : trainable_architectures()) names.emplace_back(known.name);
    return names;
}

namespace {

const TrainableArchitecture & find_architecture(const std::string & name, const std::string & path) {
    std::string names;
    for (const auto & known : trainable_architectures()) {
        if (name == known.name) return known;
        names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    throw Error("unsupported-architecture", "this architecture cannot be trained")
        .subject(path)
        .expected("general.architecture one of " + names)
        .received('"' + name + '"')
        .remedy("load it with trainable \"none\" to generate only, or choose another model");
}

// Floats, and quantized values that can be read: gradients pass through weights that are converted row by row.
// check_tensor_types has asked whether they can be multiplied.
bool is_trainable_type(ggml_type type) {
    if (type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) return true;
    return ggml_is_quantized(type) && ggml_get_type_traits(type)->to_float;
}

// Hands out tensors by name and remembers which were asked for, so that leftovers can be refused.
class TensorTable {
   public:
    TensorTable(const std::vector<Weight> & weights, std::string path) : path_(std::move(path)) {
        for (const auto & [name, tensor] : weights) table_[name] = tensor;
    }
    ggml_tensor * find(const std::string & name) {
        const auto it = table_.find(name);
        if (it == table_.end()) return nullptr;
        used_.insert(name);
        check_type(it->second, name);
        return it->second;
    }
    ggml_tensor * need(const std::string & name) {
        ggml_tensor * tensor = find(name);
        if (!tensor)
            throw unsupported("a weight that training needs is missing")
                .expected("a tensor \"" + name + '"')
                .received("none");
        return tensor;
    }
    void refuse_leftovers() const {
        for (const auto & [name, tensor] : table_) {
            if (!used_.count(name))
                throw unsupported("has a weight that the training graph does not model").received('"' + name + '"');
        }
    }

   private:
    void check_type(const ggml_tensor * tensor, const std::string & name) const {
        if (is_trainable_type(tensor->type)) return;
        throw Error("unsupported-type", "a weight's type cannot be trained on")
            .subject(path_)
            .expected("F32, F16, BF16, or a quantized type")
            .received(name + " is " + ggml_type_name(tensor->type))
            .remedy("quantize the model to one of these types");
    }
    Error unsupported(const std::string & summary) const {
        return Error("unsupported-tensor", summary)
            .subject(path_)
            .remedy("load it with trainable \"none\" to generate only, or choose another model");
    }
    std::string path_;
    std::map<std::string, ggml_tensor *> table_;
    std::set<std::string> used_;
};

// RoPE's numbers, as llama_context derives them when no option overrides them. Returns the scale of frequencies.
float describe_rope(const llama_hparams & hp, Architecture & a) {
    const float scale = hp.rope_scaling_type_train == LLAMA_ROPE_SCALING_TYPE_NONE ? 1.0f : hp.rope_freq_scale_train;
    const bool is_yarn = hp.rope_scaling_type_train == LLAMA_ROPE_SCALING_TYPE_YARN;
    a.ext_factor = hp.yarn_ext_factor >= 0.0f ? hp.yarn_ext_factor : is_yarn ? 1.0f : 0.0f;
    a.attn_factor = hp.yarn_attn_factor;
    a.beta_fast = hp.yarn_beta_fast;
    a.beta_slow = hp.yarn_beta_slow;
    if (a.ext_factor != 0.0f) {
        const float factor = 1.0f / scale;
        const auto magnitude = [](float by, float weight) {
            return by <= 1.0f ? 1.0f : 0.1f * weight * std::log(by) + 1.0f;
        };
        a.attn_factor = magnitude(factor, 1.0f);
        if (hp.rope_yarn_log_mul != 0.0f) a.attn_factor /= magnitude(factor, hp.rope_yarn_log_mul);
        // ggml multiplies by this again.
        a.attn_factor *= 1.0f / (1.0f + 0.1f * std::log(factor));
    }
    a.attn_factor *= hp.rope_attn_factor;
    return scale;
}

WeightRows all_rows(ggml_tensor * tensor) { return {tensor, 0, tensor->ne[1]}; }

// Queries, keys and values, by one tensor each or in one.
void find_attention(TensorTable & table, const std::string & block, const Architecture & a, LayerWeights & w) {
    const int64_t q = a.n_head * a.head_size, kv = a.n_head_kv * a.head_size;
    if (ggml_tensor * fused = table.find(block + "attn_qkv.weight")) {
        w.wq = {fused, 0, q};
        w.wk = {fused, q, kv};
        w.wv = {fused, q + kv, kv};
    } else {
        w.wq = all_rows(table.need(block + "attn_q.weight"));
        w.wk = all_rows(table.need(block + "attn_k.weight"));
        w.wv = all_rows(table.need(block + "attn_v.weight"));
    }
    w.wo = table.need(block + "attn_output.weight");
}

DeltaWeights find_delta_net(TensorTable & table, const std::string & block) {
    const auto need = [&](const char * name) { return table.need(block + name); };
    DeltaWeights w{};
    w.in = need("attn_qkv.weight");
    w.conv = need("ssm_conv1d.weight");
    w.gate = need("attn_gate.weight");
    w.out = need("ssm_out.weight");
    w.alpha = need("ssm_alpha.weight");
    w.alpha_bias = need("ssm_dt.bias");
    w.beta = need("ssm_beta.weight");
    w.decay = need("ssm_a");
    w.norm = need("ssm_norm.weight");
    return w;
}

MambaWeights find_mamba(TensorTable & table, const std::string & block) {
    const auto need = [&](const char * name) { return table.need(block + name); };
    MambaWeights w{};
    w.in = need("ssm_in.weight");
    w.conv = need("ssm_conv1d.weight");
    w.conv_bias = need("ssm_conv1d.bias");
    w.step_bias = need("ssm_dt.bias");
    w.rate = need("ssm_a");
    w.skip = need("ssm_d");
    w.norm = need("ssm_norm.weight");
    w.out = need("ssm_out.weight");
    return w;
}

// The gate and what it multiplies: in one tensor, they are its halves.
void find_feed_forward(TensorTable & table, const std::string & block, const Architecture & a, LayerWeights & w) {
    w.ffn_norm = table.need(block + a.ffn_norm_name);
    w.ffn_down = table.need(block + "ffn_down.weight");
    ggml_tensor * up = table.need(block + "ffn_up.weight");
    const int64_t width = w.ffn_down->ne[0];
    if (up->ne[1] == 2 * width) {
        w.ffn_gate = {up, 0, width};
        w.ffn_up = {up, width, width};
    } else {
        w.ffn_gate = all_rows(table.need(block + "ffn_gate.weight"));
        w.ffn_up = all_rows(up);
    }
}

ExpertWeights find_experts(TensorTable & table, const std::string & block) {
    const auto need = [&](const char * name) { return table.need(block + name); };
    const auto find = [&](const char * name) { return table.find(block + name); };
    return {need("ffn_gate_inp.weight"), need("ffn_gate_exps.weight"), need("ffn_up_exps.weight"),
        need("ffn_down_exps.weight"), find("ffn_gate_inp.bias"), find("ffn_gate_exps.bias"), find("ffn_up_exps.bias"),
        find("ffn_down_exps.bias")};
}

}  // namespace

void check_trainable_architecture(const std::string & name, const std::string & path) { find_architecture(name, path); }

Architecture describe_architecture(llama_model * model, const std::vector<Weight> & weights, const std::string & path) {
    const auto & hp = model->hparams;
    Architecture a;
    a.name = llm_arch_name(model->arch);
    const TrainableArchitecture & known = find_architecture(a.name, path);
    const auto refuse = [&](const char * what) {
        return Error(
            "unsupported-architecture", std::string("uses ") + what + ", which the training graph does not model")
            .subject(path)
            .remedy("load it with trainable \"none\" to generate only, or choose another model");
    };
    if (hp.n_swa > 0 && hp.swa_type != LLAMA_SWA_TYPE_STANDARD) throw refuse("attention in chunks");
    if (hp.attn_soft_cap) throw refuse("soft-capped attention");
    if (hp.use_kq_norm) throw refuse("L2-normalised queries");
    a.n_embd = hp.n_embd;
    a.n_layer = hp.n_layer();
    a.n_head = hp.n_head();
    a.n_head_kv = 0;
    a.head_size = hp.n_embd_head_k();
    if (hp.n_embd_head_v() != hp.n_embd_head_k()) throw refuse("value heads of another size");
    for (uint32_t il = 0; il < hp.n_layer(); il++) {
        if (hp.is_recr(il)) continue;
        if (a.n_head_kv == 0) a.n_head_kv = hp.n_head_kv(il);
        if (hp.n_head(il) != hp.n_head(0) || hp.n_head_kv(il) != a.n_head_kv)
            throw refuse("head counts that differ by layer");
        if (hp.n_embd_head_k(il) != hp.n_embd_head_k() || hp.n_embd_head_v(il) != hp.n_embd_head_v() ||
            hp.n_rot(il) != hp.n_rot())
            throw refuse("heads whose size differs by layer");
    }
    if (a.n_head_kv == 0) throw refuse("no attention");
    a.norm_eps = hp.f_norm_rms_eps;
    a.attention_scale = hp.f_attention_scale == 0.0f ? 1.0f / std::sqrt(float(a.head_size)) : hp.f_attention_scale;
    a.rope_type = int(llama_model_rope_type(model));
    a.rope_dims = int(hp.n_rot());
    const bool has_sections = hp.n_pos_per_embd() > 1;
    for (size_t i = 0; i < 4; i++) a.rope_sections[i] = has_sections ? hp.rope_sections[i] : 0;
    a.n_deepstack = std::min<int64_t>(hp.n_deepstack_layers, a.n_layer);
    a.rope_context = int(hp.n_ctx_orig_yarn != 0 ? hp.n_ctx_orig_yarn : hp.n_ctx_train);
    a.window = hp.is_swa_any() ? hp.n_swa : 0;
    const float rope_scale = describe_rope(hp, a);

    if (const char * problem = known.describe ? known.describe(*model, a) : nullptr) throw refuse(problem);
    if (hp.n_expert > 0 && a.experts_used == 0) throw refuse("mixture of experts");

    TensorTable table(weights, path);
    a.rope_factors = table.find("rope_freqs.weight");
    // Model::choose_rope_factors has chosen one of these.
    const bool has_long = table.find("rope_factors_long.weight"), has_short = table.find("rope_factors_short.weight");
    if (!a.rope_factors && (has_long || has_short)) a.rope_factors = model->layers.front().rope_short;
    a.token_embd = table.need("token_embd.weight");
    a.output_norm = table.need(a.output_norm_name);
    a.output = table.find("output.weight");
    if (!a.output) a.output = a.token_embd;
    a.n_vocab = a.output->ne[1];
    for (int64_t il = 0; il < a.n_layer; il++) {
        const std::string p = "blk." + std::to_string(il) + ".";
        LayerWeights w{};
        const bool has_rope = hp.has_rope(uint32_t(il)) && (a.no_rope_step == 0 || (il + 1) % a.no_rope_step != 0);
        w.math = {has_rope, hp.rope_freq_base_train, rope_scale, 0};
        if (a.window > 0 && hp.is_swa(uint32_t(il)))
            w.math = {has_rope, hp.rope_freq_base_train_swa, hp.rope_freq_scale_train_swa, a.window};
        w.attn_norm = table.need(p + "attn_norm.weight");
        if (hp.is_recr(uint32_t(il)) && a.state.corrects) {
            w.delta = find_delta_net(table, p);
            a.conv_taps = w.delta.conv->ne[0];
        } else if (hp.is_recr(uint32_t(il)) && a.state.value_heads > 0) {
            w.mamba = find_mamba(table, p);
            a.conv_taps = w.mamba.conv->ne[0];
        } else if (hp.is_recr(uint32_t(il))) {
            w.conv = table.need(p + "shortconv.conv.weight");
            w.conv_in = table.need(p + "shortconv.in_proj.weight");
            w.conv_out = table.need(p + "shortconv.out_proj.weight");
            a.conv_taps = w.conv->ne[0];
        } else {
            find_attention(table, p, a, w);
        }
        w.bq = table.find(p + "attn_q.bias");
        w.bk = table.find(p + "attn_k.bias");
        w.bv = table.find(p + "attn_v.bias");
        w.bo = table.find(p + "attn_output.bias");
        w.sinks = table.find(p + "attn_sinks.weight");
        w.q_norm = table.find(p + "attn_q_norm.weight");
        w.k_norm = table.find(p + "attn_k_norm.weight");
        if (!w.q_norm != !w.k_norm) throw refuse("a norm of queries or keys without the other");
        const std::string post_norm = "post_attention_norm.weight";  // in some architectures the feed-forward's own
        if (a.ffn_norm_name != post_norm) w.post_attn_norm = table.find(p + post_norm);
        w.post_ffn_norm = table.find(p + "post_ffw_norm.weight");
        if (a.experts_used > 0) {
            w.ffn_norm = table.need(p + a.ffn_norm_name);
            w.experts = find_experts(table, p);
        } else {
            find_feed_forward(table, p, a, w);
        }
        a.layers.push_back(w);
    }
    table.refuse_leftovers();
    return a;
}

}  // namespace cria
