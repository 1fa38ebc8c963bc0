#include "train/parameters.h"

#include <algorithm>
#include <cmath>

#include "cria/error.h"
#include "llama-adapter.h"
#include "llama-model.h"

namespace cria {

namespace {

bool is_matrix(const ggml_tensor * t) { return ggml_n_dims(t) >= 2 && t->ne[0] > 1; }

// Weight decay pulls matrices. Those of experts' biases are vectors, one for each expert.
bool has_decay(const std::string & name, const ggml_tensor * t) {
    return is_matrix(t) && name.find("norm") == std::string::npos && name.find(".bias") == std::string::npos;
}

}  // namespace

ParameterSet::ParameterSet(const Model & model, const Compute & compute, bool value_head) {
    std::vector<std::pair<std::string, ggml_tensor *>> values;
    if (model.options().trainable == Trainable::full) {
        for (const auto & [name, tensor] : model.weights()) {
            // A tied output appears only under the embedding's name. A critic does not use a separate LM head.
            if (!is_constant(name) && !(value_head && name == "output.weight")) values.emplace_back(name, tensor);
        }
    } else if (model.adapter()) {
        for (const auto & [name, pair] : model.adapter()->ab_map) {
            values.emplace_back(name + ".lora_a", pair.a);
            values.emplace_back(name + ".lora_b", pair.b);
        }
        // ab_map is unordered; a fixed order keeps runs comparable.
        std::sort(values.begin(), values.end(), [](const auto & x, const auto & y) { return x.first < y.first; });
    }
    if (value_head) {
        own_values_ = std::make_unique<TensorPool>(2);
        value_head_.weight = own_values_->add(GGML_TYPE_F32, {model.architecture()->n_embd, 1});
        value_head_.bias = own_values_->add(GGML_TYPE_F32, {1});
        own_values_->allocate(compute, "the value head");
        for (ggml_tensor * t : {value_head_.weight, value_head_.bias})
            ggml_backend_tensor_memset(t, 0, 0, ggml_nbytes(t));
        values.emplace_back("value_head.weight", value_head_.weight);
        values.emplace_back("value_head.bias", value_head_.bias);
    }
    pool_ = std::make_unique<TensorPool>(values.size() * 3);
    for (const auto & [name, value] : values) {
        if (index_.count(value)) continue;
        const std::vector<int64_t> shape(value->ne, value->ne + GGML_MAX_DIMS);
        Parameter p{name, value, pool_->add(GGML_TYPE_F32, shape), pool_->add(GGML_TYPE_F32, shape),
            pool_->add(GGML_TYPE_F32, shape), has_decay(name, value)};
        index_[value] = parameters_.size();
        parameters_.push_back(p);
    }
    if (!parameters_.empty()) {
        pool_->allocate(compute, "gradients and Adam moments");
        for (const auto & p : parameters_) {
            for (ggml_tensor * t : {p.gradient, p.moment1, p.moment2})
                ggml_backend_tensor_memset(t, 0, 0, ggml_nbytes(t));
        }
    }
    const Architecture & arch = *model.architecture();
    // Five weights of a layer may be rows of others, each with a gradient, and B with another.
    views_.reset(ggml_init({size_t(arch.n_layer) * 5 * 4 * ggml_tensor_overhead(), nullptr, true}));
    for (const auto & w : arch.layers) {
        LayerParameters l;
        l.attn_norm = make_norm(w.attn_norm);
        l.q_norm = make_norm(w.q_norm);
        l.k_norm = make_norm(w.k_norm);
        l.post_attn_norm = make_norm(w.post_attn_norm);
        l.ffn_norm = make_norm(w.ffn_norm);
        l.post_ffn_norm = make_norm(w.post_ffn_norm);
        l.q = make_linear(model, w.wq, w.bq);
        l.k = make_linear(model, w.wk, w.bk);
        l.v = make_linear(model, w.wv, w.bv);
        l.o = make_linear(model, w.wo, w.bo);
        if (w.sinks) l.sinks = {w.sinks, gradient_of(w.sinks)};
        if (w.conv) l.conv = {w.conv, gradient_of(w.conv)};
        l.conv_in = make_linear(model, w.conv_in, nullptr);
        l.conv_out = make_linear(model, w.conv_out, nullptr);
        if (w.delta.in) l.delta = make_delta_net(model, w.delta);
        if (w.mamba.in) l.mamba = make_mamba(model, w.mamba);
        l.gate = make_linear(model, w.ffn_gate, nullptr);
        l.up = make_linear(model, w.ffn_up, nullptr);
        l.down = make_linear(model, w.ffn_down, nullptr);
        if (w.experts.router) l.experts = make_experts(model, w.experts);
        l.math = w.math;
        layers_.push_back(l);
    }
    output_ = make_linear(model, arch.output, nullptr);
    output_norm_ = make_norm(arch.output_norm);
    if (value_head) value_head_ = make_linear(model, value_head_.weight, value_head_.bias);
    d_token_embd_ = gradient_of(arch.token_embd);
}

ggml_tensor * ParameterSet::gradient_of(const ggml_tensor * value) const {
    const auto it = index_.find(value);
    return it == index_.end() ? nullptr : parameters_[it->second].gradient;
}

Linear ParameterSet::make_linear(const Model & model, ggml_tensor * weight, ggml_tensor * bias) const {
    if (!weight) return {};
    Linear linear{weight, bias};
    linear.d_weight = gradient_of(weight);
    linear.d_bias = bias ? gradient_of(bias) : nullptr;
    if (llama_adapter_lora * adapter = model.adapter()) {
        if (const auto * pair = adapter->get_weight(weight)) {
            linear.lora_a = pair->a;
            linear.lora_b = pair->b;
            linear.lora_scale = pair->get_scale(adapter->alpha, 1.0f);
            linear.d_lora_a = gradient_of(pair->a);
            linear.d_lora_b = gradient_of(pair->b);
        }
    }
    return linear;
}

ggml_tensor * ParameterSet::take_rows(ggml_tensor * whole, const WeightRows & rows) {
    if (!whole) return nullptr;
    ggml_tensor * part = ggml_new_tensor_2d(views_.get(), whole->type, whole->ne[0], rows.count);
    part->data = static_cast<char *>(whole->data) + size_t(rows.begin) * whole->nb[1];
    part->buffer = whole->buffer;
    return part;
}

Linear ParameterSet::make_linear(const Model & model, const WeightRows & rows, ggml_tensor * bias) {
    Linear linear = make_linear(model, rows.tensor, bias);
    if (!rows.tensor || rows.count == rows.tensor->ne[1]) return linear;
    for (ggml_tensor ** whole : {&linear.weight, &linear.d_weight, &linear.lora_b, &linear.d_lora_b})
        *whole = take_rows(*whole, rows);
    return linear;
}

Norm ParameterSet::make_norm(ggml_tensor * weight) const { return weight ? Norm{weight, gradient_of(weight)} : Norm{}; }

DeltaParameters ParameterSet::make_delta_net(const Model & model, const DeltaWeights & w) const {
    DeltaParameters p;
    p.in = make_linear(model, w.in, nullptr);
    p.gate = make_linear(model, w.gate, nullptr);
    p.alpha = make_linear(model, w.alpha, w.alpha_bias);
    p.beta = make_linear(model, w.beta, nullptr);
    p.out = make_linear(model, w.out, nullptr);
    p.conv = {w.conv, gradient_of(w.conv)};
    p.decay = {w.decay, gradient_of(w.decay)};
    p.norm = make_norm(w.norm);
    return p;
}

MambaParameters ParameterSet::make_mamba(const Model & model, const MambaWeights & w) const {
    const auto vector = [this](ggml_tensor * t) { return Vector{t, gradient_of(t)}; };
    MambaParameters p;
    p.in = make_linear(model, w.in, nullptr);
    p.out = make_linear(model, w.out, nullptr);
    p.conv = {w.conv, gradient_of(w.conv)};
    p.conv_bias = vector(w.conv_bias);
    p.step_bias = vector(w.step_bias);
    p.rate = vector(w.rate);
    p.skip = vector(w.skip);
    p.norm = make_norm(w.norm);
    return p;
}

ExpertParameters ParameterSet::make_experts(const Model & model, const ExpertWeights & w) const {
    return {make_linear(model, w.router, w.router_bias), make_linear(model, w.gate, w.gate_bias),
        make_linear(model, w.up, w.up_bias), make_linear(model, w.down, w.down_bias)};
}

const Parameter * ParameterSet::find(const std::string & name) const {
    for (const auto & p : parameters_) {
        if (p.name == name) return &p;
    }
    return nullptr;
}

void ParameterSet::clear_gradients() {
    for (const auto & p : parameters_) ggml_backend_tensor_memset(p.gradient, 0, 0, ggml_nbytes(p.gradient));
}

void ParameterSet::zero_gradients() {
    clear_gradients();
    has_gradients_ = false;
}

void ParameterSet::begin_micro_batch(Compute & compute) {
    if (!has_gradients_) return;
    if (!sums_pool_) {
        auto pool = std::make_unique<TensorPool>(parameters_.size());
        sums_.clear();
        for (const auto & p : parameters_)
            sums_.push_back(pool->add(GGML_TYPE_F32, {p.gradient->ne, p.gradient->ne + GGML_MAX_DIMS}));
        pool->allocate(compute, "sums of gradients");
        sums_pool_ = std::move(pool);
    }
    Graph graph(compute, parameters_.size() * 3 + 16);
    for (size_t i = 0; i < parameters_.size(); i++) graph.write(graph.ref(parameters_[i].gradient), sums_[i]);
    graph.run(compute.make_allocator().get());
    clear_gradients();
}

void ParameterSet::end_micro_batch(Compute & compute) {
    if (has_gradients_) {
        Graph graph(compute, parameters_.size() * 3 + 16);
        for (size_t i = 0; i < parameters_.size(); i++) graph.accumulate(graph.ref(sums_[i]), parameters_[i].gradient);
        graph.run(compute.make_allocator().get());
    }
    has_gradients_ = true;
}

double ParameterSet::gradient_norm(Compute & compute) const {
    Graph graph(compute, parameters_.size() * 6 + 16);
    TensorPool sums(parameters_.size());
    std::vector<ggml_tensor *> targets;
    targets.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); i++) targets.push_back(sums.add(GGML_TYPE_F32, {1}));
    sums.allocate(compute, "gradient norms");
    for (size_t i = 0; i < parameters_.size(); i++) {
        ggml_tensor * g = graph.ref(parameters_[i].gradient);
        graph.write(ggml_sum(graph.ctx(), ggml_sqr(graph.ctx(), ggml_reshape_1d(graph.ctx(), g, ggml_nelements(g)))),
            targets[i]);
    }
    const AllocatorPtr allocator = compute.make_allocator();
    graph.run(allocator.get());
    if (compute.only_ask) return 0.0;
    double total = 0.0;
    for (ggml_tensor * target : targets) {
        float sum = 0.0f;
        ggml_backend_tensor_get(target, &sum, 0, sizeof sum);
        total += double(sum);
    }
    return std::sqrt(total);
}

StepResult ParameterSet::step(const AdamW & options, Compute & compute) {
    StepResult result;
    result.grad_norm = gradient_norm(compute);
    if (!std::isfinite(result.grad_norm)) {
        zero_gradients();
        return result;
    }
    // torch.nn.utils.clip_grad_norm_: the coefficient is max_norm / (norm + 1e-6), at most 1.
    const float clip =
        options.max_grad_norm > 0 ? float(std::min(1.0, options.max_grad_norm / (result.grad_norm + 1e-6))) : 1.0f;
    const double steps = double(++step_count);
    const float bias1 = 1.0f / (1.0f - float(std::pow(double(options.beta1), steps)));
    const float bias2 = 1.0f / (1.0f - float(std::pow(double(options.beta2), steps)));
    TensorPool settings(2);
    ggml_tensor * with_decay = settings.add(GGML_TYPE_F32, {7});
    ggml_tensor * without_decay = settings.add(GGML_TYPE_F32, {7});
    settings.allocate(compute, "optimizer settings");
    float values[7] = {
        options.learning_rate, options.beta1, options.beta2, options.epsilon, options.weight_decay, bias1, bias2};
    ggml_backend_tensor_set(with_decay, values, 0, sizeof values);
    values[4] = 0.0f;
    ggml_backend_tensor_set(without_decay, values, 0, sizeof values);

    Graph graph(compute, parameters_.size() * 6 + 16);
    for (const auto & p : parameters_) {
        ggml_tensor * value = graph.ref(p.value);
        ggml_set_param(value);
        ggml_tensor * gradient = graph.ref(p.gradient);
        if (clip != 1.0f) gradient = ggml_scale(graph.ctx(), gradient, clip);
        graph.expand(ggml_opt_step_adamw(graph.ctx(), value, gradient, graph.ref(p.moment1), graph.ref(p.moment2),
            graph.ref(p.decays ? with_decay : without_decay)));
    }
    const AllocatorPtr allocator = compute.make_allocator();
    graph.run(allocator.get());
    zero_gradients();
    result.stepped = true;
    return result;
}

}  // namespace cria
