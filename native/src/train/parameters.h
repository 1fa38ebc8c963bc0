// The trainable tensors with their gradients and Adam moments, and the linear layers made of them.
#pragma once

#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include "architecture.h"
#include "cria/trainer.h"
#include "train/compute.h"

namespace cria {

struct Parameter {
    std::string name;
    ggml_tensor * value;     // the live tensor
    ggml_tensor * gradient;  // F32, accumulated
    ggml_tensor *moment1, *moment2;
    bool decays;  // true for matrices, false for norms, biases and numbers of heads
};

// y = W x + bias + scale B (A x); the gradients are null where a tensor is frozen.
struct Linear {
    ggml_tensor *weight = nullptr, *bias = nullptr, *lora_a = nullptr, *lora_b = nullptr;
    float lora_scale = 0.0f;
    ggml_tensor *d_weight = nullptr, *d_bias = nullptr, *d_lora_a = nullptr, *d_lora_b = nullptr;
};

// y = rms_norm(x) * weight.
struct Norm {
    ggml_tensor *weight = nullptr, *d_weight = nullptr;
};

// A convolution over time of each dimension by itself.
struct Convolution {
    ggml_tensor *weight = nullptr, *d_weight = nullptr;
};

// Numbers that are trained as they are.
struct Vector {
    ggml_tensor *weight = nullptr, *d_weight = nullptr;
};

// In place of attention, if `in` has a weight.
struct DeltaParameters {
    Linear in, gate, alpha, beta, out;
    Convolution conv;
    Vector decay;
    Norm norm;
};

// The same of Mamba-2's layer.
struct MambaParameters {
    Linear in, out;
    Convolution conv;
    Vector conv_bias, step_bias, rate, skip;
    Norm norm;
};

// In place of gate, up and down, if the router has a weight.
struct ExpertParameters {
    Linear router;
    Linear gate, up, down;  // with one matrix, and bias, for each expert (expert_linear.h)
};

struct LayerParameters {
    Norm attn_norm, q_norm, k_norm, post_attn_norm, ffn_norm, post_ffn_norm;
    Linear q, k, v, o, gate, up, down;
    Convolution conv;  // in place of attention, if it has a weight; q, k, v and o then have none
    Linear conv_in, conv_out;
    DeltaParameters delta;
    MambaParameters mamba;
    ExpertParameters experts;
    Vector sinks;  // of attention, if it has them
    LayerMath math;
};

class ParameterSet {
   public:
    // With `value_head`, a critic's head is added to the trained tensors: value_head.weight [d, 1] and value_head.bias
    // [1], zero.
    ParameterSet(const Model & model, const Compute & compute, bool value_head);
    const std::vector<Parameter> & all() const { return parameters_; }
    const Parameter * find(const std::string & name) const;
    const std::vector<LayerParameters> & layers() const { return layers_; }
    const Linear & output() const { return output_; }
    const Norm & output_norm() const { return output_norm_; }
    const Linear * value_head() const { return value_head_.weight ? &value_head_ : nullptr; }
    ggml_tensor * d_token_embd() const { return d_token_embd_; }

    void zero_gradients();
    // Call these around a micro-batch's gradient: it starts from zero and is then added to the earlier ones, so that it
    // has the same bits wherever it is computed. Between the two calls the gradients belong only to this micro-batch.
    void begin_micro_batch(Compute & compute);
    void end_micro_batch(Compute & compute);
    // Tells that the gradients were written from outside: the next micro-batch is added to them.
    void expect_gradients() { has_gradients_ = true; }
    StepResult step(const AdamW & options, Compute & compute);
    std::atomic<int64_t> step_count{0};  // read from any thread, also during a step

   private:
    ggml_tensor * gradient_of(const ggml_tensor * value) const;
    // Without weights where `weight` is null.
    Linear make_linear(const Model & model, ggml_tensor * weight, ggml_tensor * bias) const;
    // The part of a layer that some rows of its weight are: its A is that of the whole, its B those rows'.
    Linear make_linear(const Model & model, const WeightRows & rows, ggml_tensor * bias);
    // A matrix with the memory of these rows of `whole`, which may be null.
    ggml_tensor * take_rows(ggml_tensor * whole, const WeightRows & rows);
    Norm make_norm(ggml_tensor * weight) const;
    DeltaParameters make_delta_net(const Model & model, const DeltaWeights & weights) const;
    MambaParameters make_mamba(const Model & model, const MambaWeights & weights) const;
    ExpertParameters make_experts(const Model & model, const ExpertWeights & weights) const;
    double gradient_norm(Compute & compute) const;
    void clear_gradients();

    std::vector<Parameter> parameters_;
    std::unordered_map<const ggml_tensor *, size_t> index_;
    ContextPtr views_;  // of rows
    std::unique_ptr<TensorPool> own_values_;  // tensors that are not in the model
    std::unique_ptr<TensorPool> pool_;
    // Gradients of earlier micro-batches while another one is computed; created for the second one.
    std::unique_ptr<TensorPool> sums_pool_;
    std::vector<ggml_tensor *> sums_;
    bool has_gradients_ = false;
    std::vector<LayerParameters> layers_;
    Linear output_, value_head_;
    Norm output_norm_;
    ggml_tensor * d_token_embd_ = nullptr;
};

}  // namespace cria
