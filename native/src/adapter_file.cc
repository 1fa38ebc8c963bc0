#include "adapter_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "cria/error.h"
#include "cria/runtime.h"
#include "gguf_file.h"
#include "llama-adapter.h"
#include "llama-model.h"

namespace cria {

namespace {

constexpr const char * kLinearLayers[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};

// "blk.3.attn_q.weight" -> "attn_q"; "output.weight" -> "output"; anything else -> "".
std::string short_name(const std::string & tensor) {
    const std::string suffix = ".weight";
    if (tensor.size() <= suffix.size() || tensor.compare(tensor.size() - suffix.size(), suffix.size(), suffix) != 0) return "";
    const std::string stem = tensor.substr(0, tensor.size() - suffix.size());
    if (stem == "output") return stem;
    if (stem.rfind("blk.", 0) != 0) return "";
    const size_t dot = stem.find('.', 4);
    return dot == std::string::npos ? "" : stem.substr(dot + 1);
}

bool is_linear(const std::string & name) {
    if (name == "output") return true;
    return std::any_of(std::begin(kLinearLayers), std::end(kLinearLayers), [&](const char * layer) { return name == layer; });
}

struct HostTensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
};

std::vector<HostTensor> make_initial_pairs(const Model & model, const LoraOptions & options, uint32_t seed) {
    for (const auto & target : options.targets) {
        if (!is_linear(target)) {
            throw Error("bad-option", "is not a linear layer").subject("lora.targets")
                .expected("attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down or output").received('"' + target + '"');
        }
    }
    std::mt19937 random(seed);
    std::vector<HostTensor> pairs;
    for (const auto & [name, weight] : llama_internal_get_tensor_map(model.llama())) {
        const std::string layer = short_name(name);
        const bool wanted = options.targets.empty()
            ? is_linear(layer) && layer != "output"
            : std::find(options.targets.begin(), options.targets.end(), layer) != options.targets.end();
        if (!wanted || ggml_n_dims(weight) != 2) continue;
        HostTensor a{name + ".lora_a", {weight->ne[0], options.rank}, {}};
        HostTensor b{name + ".lora_b", {options.rank, weight->ne[1]}, {}};
        // As PEFT does: A uniform in ±1/sqrt(inputs) (Kaiming with a = sqrt 5), B zero, so that training starts at W.
        std::uniform_real_distribution<float> uniform(-1.0f / std::sqrt(float(weight->ne[0])), 1.0f / std::sqrt(float(weight->ne[0])));
        a.values.resize(size_t(weight->ne[0]) * size_t(options.rank));
        for (auto & value : a.values) value = uniform(random);
        b.values.assign(size_t(options.rank) * size_t(weight->ne[1]), 0.0f);
        pairs.push_back(std::move(a));
        pairs.push_back(std::move(b));
    }
    if (pairs.empty()) {
        throw Error("bad-option", "matches no layer of this model").subject("lora.targets").received(options.targets.empty() ? "(all)" : options.targets.front());
    }
    return pairs;
}

std::vector<float> to_floats(const ggml_tensor * tensor) {
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    if (tensor->type == GGML_TYPE_F32) {
        std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
    } else {
        ggml_get_type_traits(tensor->type)->to_float(tensor->data, values.data(), int64_t(values.size()));
    }
    return values;
}

std::vector<HostTensor> read_pairs(const std::string & path, float & alpha, int & rank) {
    const GgufHeader header = read_gguf(path, true);
    if (gguf_string(header.gguf.get(), "adapter.type") != "lora") {
        throw Error("not-an-adapter", "is not a LoRA adapter").subject(path).expected("adapter.type = \"lora\"")
            .received('"' + gguf_string(header.gguf.get(), "adapter.type") + '"');
    }
    const int64_t id = gguf_find_key(header.gguf.get(), "adapter.lora.alpha");
    if (id >= 0 && gguf_get_kv_type(header.gguf.get(), id) == GGUF_TYPE_FLOAT32) alpha = gguf_get_val_f32(header.gguf.get(), id);
    std::vector<HostTensor> pairs;
    for (ggml_tensor * t = ggml_get_first_tensor(header.tensors.get()); t; t = ggml_get_next_tensor(header.tensors.get(), t)) {
        const std::string name = t->name;
        const bool is_b = name.size() > 7 && name.compare(name.size() - 7, 7, ".lora_b") == 0;
        const bool is_a = name.size() > 7 && name.compare(name.size() - 7, 7, ".lora_a") == 0;
        if (!is_a && !is_b) continue;
        if (is_b) rank = int(t->ne[0]);
        if (t->type != GGML_TYPE_F32 && !ggml_get_type_traits(t->type)->to_float) continue;
        pairs.push_back({name, {t->ne[0], t->ne[1]}, to_floats(t)});
    }
    return pairs;
}

using Owned = std::unique_ptr<gguf_context, GgufDeleter>;

Owned make_adapter_metadata(const Model & model, float alpha) {
    Owned gguf(gguf_init_empty());
    gguf_set_val_str(gguf.get(), "general.type", "adapter");
    gguf_set_val_str(gguf.get(), "general.architecture", gguf_string(model.header().gguf.get(), "general.architecture").c_str());
    gguf_set_val_str(gguf.get(), "adapter.type", "lora");
    gguf_set_val_f32(gguf.get(), "adapter.lora.alpha", alpha);
    return gguf;
}

std::vector<float> read_floats(const ggml_tensor * tensor) {
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, values.size() * sizeof(float));
    return values;
}

}  // namespace

llama_adapter_lora * load_or_create_adapter(const Model & model, const LoraOptions & options, uint32_t seed) {
    if (options.rank < 1 || options.rank > 4096) {
        throw Error("bad-option", "is out of range").subject("lora.rank").expected("1 to 4096").received(std::to_string(options.rank));
    }
    if (!std::isfinite(options.alpha) || options.alpha <= 0) {
        throw Error("bad-option", "must be a positive number").subject("lora.alpha").received(std::to_string(options.alpha));
    }
    float alpha = options.alpha;
    int rank = options.rank;
    const auto pairs = options.path.empty() ? make_initial_pairs(model, options, seed) : read_pairs(options.path, alpha, rank);
    const Owned gguf = make_adapter_metadata(model, alpha);
    std::vector<GgufTensor> tensors;
    for (const auto & pair : pairs) tensors.push_back({pair.name, GGML_TYPE_F32, pair.shape, pair.values.data()});
    FILE * file = write_gguf_to_temporary(gguf.get(), tensors);
    take_log_errors();
    llama_adapter_lora * adapter = llama_adapter_lora_init_from_file_ptr(model.llama(), file);
    std::fclose(file);
    if (!adapter) {
        throw Error("adapter-failed", "the adapter does not fit this model").subject(options.path.empty() ? "lora" : options.path)
            .received(take_log_errors()).remedy("use an adapter that was trained on this base model");
    }
    return adapter;
}

void save_adapter(const Model & model, const std::string & path) {
    const llama_adapter_lora * adapter = model.adapter();
    if (!adapter) {
        throw Error("no-adapter", "the model was loaded without a LoRA adapter").subject(path).remedy("load it with lora: {rank, alpha}, or save the model instead");
    }
    const Owned gguf = make_adapter_metadata(model, adapter->alpha);
    std::vector<std::string> names;
    for (const auto & [name, weight] : adapter->ab_map) names.push_back(name);
    std::sort(names.begin(), names.end());
    std::vector<HostTensor> pairs;
    for (const auto & name : names) {
        const auto & weight = adapter->ab_map.at(name);
        pairs.push_back({name + ".lora_a", {weight.a->ne[0], weight.a->ne[1]}, read_floats(weight.a)});
        pairs.push_back({name + ".lora_b", {weight.b->ne[0], weight.b->ne[1]}, read_floats(weight.b)});
    }
    std::vector<GgufTensor> tensors;
    for (const auto & pair : pairs) tensors.push_back({pair.name, GGML_TYPE_F32, pair.shape, pair.values.data()});
    write_gguf(path, gguf.get(), tensors);
}

void save_model(const Model & model, const std::string & path) {
    const GgufHeader & header = model.header();
    Owned gguf(gguf_init_empty());
    gguf_set_kv(gguf.get(), header.gguf.get());
    // In the order of the original file, and only what that file held (a tied output is not a second tensor).
    std::vector<std::vector<uint8_t>> data;
    std::vector<GgufTensor> tensors;
    for (ggml_tensor * t = ggml_get_first_tensor(header.tensors.get()); t; t = ggml_get_next_tensor(header.tensors.get(), t)) {
        const ggml_tensor * live = model.llama()->get_tensor(t->name);
        if (!live) {
            throw Error("unsupported-tensor", "a tensor of the file is not part of the loaded model").subject(model.options().path).received(t->name);
        }
        data.emplace_back(ggml_nbytes(live));
        ggml_backend_tensor_get(live, data.back().data(), 0, data.back().size());
        tensors.push_back({t->name, live->type, {live->ne, live->ne + ggml_n_dims(live)}, nullptr});
    }
    for (size_t i = 0; i < tensors.size(); i++) tensors[i].data = data[i].data();
    write_gguf(path, gguf.get(), tensors);
}

}  // namespace cria
