#include "adapter_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>

#include "assertions.h"
#include "cria/error.h"
#include "cria/gguf_file.h"
#include "cria/runtime.h"
#include "llama-adapter.h"
#include "llama-model.h"

namespace cria {

namespace {

constexpr const char * kLinearLayers[] = {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "shortconv.in_proj",
    "shortconv.out_proj", "attn_gate", "ssm_in", "ssm_alpha", "ssm_beta", "ssm_out", "ffn_gate", "ffn_up", "ffn_down"};

// Layers that a new adapter changes only when they are named: there are as many pairs of each of experts' matrices as
// experts.
constexpr const char * kNamedLayers[] = {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "output"};

std::string list_linear_layers() {
    std::string text;
    for (const char * layer : kLinearLayers) text += std::string(layer) + ", ";
    for (const char * layer : kNamedLayers) text += std::string(layer == kNamedLayers[0] ? "" : ", ") + layer;
    return text;
}

// "blk.3.attn_q.weight" -> "attn_q"; "output.weight" -> "output"; anything else -> "".
std::string short_name(const std::string & tensor) {
    const std::string suffix = ".weight";
    if (tensor.size() <= suffix.size() || tensor.compare(tensor.size() - suffix.size(), suffix.size(), suffix) != 0)
        return "";
    std::string stem = tensor.substr(0, tensor.size() - suffix.size());
    if (stem == "output") return stem;
    if (stem.rfind("blk.", 0) != 0) return "";
    const size_t dot = stem.find('.', 4);
    return dot == std::string::npos ? "" : stem.substr(dot + 1);
}

bool is_default(const std::string & name) {
    return std::any_of(
        std::begin(kLinearLayers), std::end(kLinearLayers), [&](const char * layer) { return name == layer; });
}

bool is_linear(const std::string & name) {
    return is_default(name) || std::any_of(std::begin(kNamedLayers), std::end(kNamedLayers),
                                   [&](const char * layer) { return name == layer; });
}

// Axes of 1 at the end are left out: a matrix, or one for each expert.
std::vector<int64_t> shape_of(const ggml_tensor * t) {
    std::vector<int64_t> shape = {t->ne[0], t->ne[1]};
    if (t->ne[2] > 1) shape.push_back(t->ne[2]);
    return shape;
}

std::string describe(const std::vector<int64_t> & shape) {
    std::string text;
    for (const int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
}

std::vector<AdapterTensor> make_initial_pairs(const Model & model, const LoraOptions & options, uint32_t seed) {
    for (const auto & target : options.targets) {
        if (!is_linear(target)) {
            throw Error("bad-option", "is not a linear layer")
                .subject("loadModel.lora.targets")
                .expected(list_linear_layers())
                .received('"' + target + '"');
        }
    }
    const int64_t rank = options.rank.value_or(8);
    std::mt19937 random(seed);
    std::vector<AdapterTensor> pairs;
    for (const auto & [name, weight] : llama_internal_get_tensor_map(model.llama())) {
        const std::string layer = short_name(name);
        const bool wanted = options.targets.empty() ? is_default(layer)
                                                    : std::find(options.targets.begin(), options.targets.end(),
                                                          layer) != options.targets.end();
        if (!wanted || ggml_n_dims(weight) < 2) continue;
        const int64_t experts = weight->ne[2];
        AdapterTensor a{name + ".lora_a", {weight->ne[0], rank}, {}};
        AdapterTensor b{name + ".lora_b", {rank, weight->ne[1]}, {}};
        if (experts > 1) {
            for (AdapterTensor * tensor : {&a, &b}) tensor->shape.push_back(experts);
        }
        // As PEFT does: A uniform in ±1/sqrt(inputs) (Kaiming with a = sqrt 5), B zero, so that training starts at W.
        std::uniform_real_distribution<float> uniform(
            -1.0f / std::sqrt(float(weight->ne[0])), 1.0f / std::sqrt(float(weight->ne[0])));
        a.values.resize(size_t(weight->ne[0]) * size_t(rank) * size_t(experts));
        for (auto & value : a.values) value = uniform(random);
        b.values.assign(size_t(rank) * size_t(weight->ne[1]) * size_t(experts), 0.0f);
        pairs.push_back(std::move(a));
        pairs.push_back(std::move(b));
    }
    if (pairs.empty()) {
        throw Error("bad-option", "matches no layer of this model")
            .subject("loadModel.lora.targets")
            .received(options.targets.empty() ? "(all)" : options.targets.front());
    }
    return pairs;
}

std::vector<float> copy_as_floats(const ggml_tensor * tensor) {
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    if (tensor->type == GGML_TYPE_F32) {
        std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
    } else {
        ggml_get_type_traits(tensor->type)->to_float(tensor->data, values.data(), int64_t(values.size()));
    }
    return values;
}

std::string list(const std::set<std::string> & names) {
    std::string text;
    for (const auto & name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

struct AdapterFile {
    float alpha = 0.0f;
    std::vector<AdapterTensor> pairs;  // A, B, A, B, ...
};

// Reads an adapter of any origin, and refuses tensors or settings that generation or training would ignore or apply
// differently.
class AdapterReader {
   public:
    AdapterReader(const Model & model, const std::string & path)
        : model_(model), path_(path), header_(read_gguf(path, true)) {}

    AdapterFile read(const LoraOptions & options) {
        check_metadata();
        AdapterFile file;
        // As in llama.cpp: absent or 0 means that the product is added as it is, not scaled by alpha / rank.
        const int64_t id = gguf_find_key(header_.gguf.get(), "adapter.lora.alpha");
        if (id >= 0 && gguf_get_kv_type(header_.gguf.get(), id) == GGUF_TYPE_FLOAT32)
            file.alpha = gguf_get_val_f32(header_.gguf.get(), id);
        std::set<std::string> targets;
        for (int64_t i = 0; i < gguf_get_n_tensors(header_.gguf.get()); i++) {
            const std::string name = gguf_get_tensor_name(header_.gguf.get(), i);
            const ggml_tensor * t = find(name);
            if (ends_with(name, ".lora_b") && find(name.substr(0, name.size() - 1) + "a")) continue;
            if (!ends_with(name, ".lora_a"))
                throw unsupported(name, "is not half of a LoRA pair; llama.cpp leaves it out");
            const std::string base = name.substr(0, name.size() - 7);
            const ggml_tensor * b = find(base + ".lora_b");
            check_pair(base, t, b, options);
            targets.insert(short_name(base));
            file.pairs.push_back({name, shape_of(t), copy_as_floats(t)});
            file.pairs.push_back({b->name, shape_of(b), copy_as_floats(b)});
        }
        if (file.pairs.empty())
            throw mismatch("holds no LoRA pair").expected("tensors <weight>.lora_a and <weight>.lora_b");
        if (options.alpha && std::fabs(*options.alpha - file.alpha) > 1e-6f * *options.alpha) {
            throw mismatch("has another alpha")
                .expected("alpha " + format_number(*options.alpha))
                .received("alpha " + format_number(file.alpha))
                .remedy("leave alpha out to use the file's");
        }
        const std::set<std::string> wanted(options.targets.begin(), options.targets.end());
        if (!wanted.empty() && wanted != targets) {
            throw mismatch("adapts other layers")
                .expected(list(wanted))
                .received(list(targets))
                .remedy("leave targets out to use the file's");
        }
        return file;
    }

   private:
    static bool ends_with(const std::string & text, const std::string & end) {
        return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
    }

    static std::string format_number(float value) {
        char text[32];
        std::snprintf(text, sizeof text, "%g", double(value));
        return text;
    }

    const ggml_tensor * find(const std::string & name) const {
        return ggml_get_tensor(header_.tensors.get(), name.c_str());
    }

    Error mismatch(const std::string & summary) const {
        return Error("adapter-mismatch", summary)
            .subject(path_)
            .remedy("use an adapter that was trained on this base model");
    }

    Error unsupported(const std::string & name, const std::string & why) const {
        return Error("unsupported-tensor", "has a tensor that cannot be trained here: it " + why)
            .subject(path_)
            .expected("LoRA pairs of " + list_linear_layers())
            .received(name)
            .remedy("merge the adapter into its model, or train one on linear layers only");
    }

    void check_metadata() const {
        const gguf_context * gguf = header_.gguf.get();
        const std::string type = gguf_string(gguf, "adapter.type");
        if (type != "lora")
            throw Error("not-an-adapter", "is not a LoRA adapter")
                .subject(path_)
                .expected("adapter.type = \"lora\"")
                .received('"' + type + '"');
        const std::string architecture = gguf_string(gguf, "general.architecture");
        const std::string expected = gguf_string(model_.header().gguf.get(), "general.architecture");
        if (architecture != expected)
            throw mismatch("is an adapter of another architecture").expected(expected).received(architecture);
        if (gguf_find_key(gguf, "adapter.alora.invocation_tokens") >= 0) {
            throw unsupported("adapter.alora.invocation_tokens", "applies only after an invocation (aLoRA)");
        }
    }

    void check_pair(
        const std::string & base, const ggml_tensor * a, const ggml_tensor * b, const LoraOptions & options) const {
        if (!is_linear(short_name(base))) throw unsupported(a->name, "does not adapt a linear layer");
        if (!b)
            throw mismatch("has a LoRA pair without its second half")
                .expected(base + ".lora_b")
                .received("no such tensor");
        for (const ggml_tensor * t : {a, b}) {
            if (t->type != GGML_TYPE_F32 && !ggml_get_type_traits(t->type)->to_float)
                throw unsupported(t->name, std::string("is of type ") + ggml_type_name(t->type));
        }
        const ggml_tensor * weight = model_.llama()->get_tensor(base.c_str());
        if (!weight) throw mismatch("adapts a weight that the model does not have").received(base);
        const int64_t experts = weight->ne[2];
        if (a->ne[0] != weight->ne[0] || b->ne[1] != weight->ne[1] || a->ne[1] != b->ne[0] || a->ne[2] != experts ||
            b->ne[2] != experts || a->ne[3] != 1 || b->ne[3] != 1) {
            const std::string each = experts > 1 ? ", " + std::to_string(experts) + "]" : "]";
            throw mismatch("is of another shape than the model's " + base)
                .expected("A [" + std::to_string(weight->ne[0]) + ", rank" + each + ", B [rank, " +
                          std::to_string(weight->ne[1]) + each)
                .received("A " + describe(shape_of(a)) + ", B " + describe(shape_of(b)));
        }
        if (options.rank && *options.rank != b->ne[0]) {
            throw mismatch("has another rank")
                .expected("rank " + std::to_string(*options.rank))
                .received("rank " + std::to_string(b->ne[0]) + " of " + base)
                .remedy("leave rank out to use the file's");
        }
    }

    const Model & model_;
    const std::string path_;
    const GgufHeader header_;
};

using Owned = std::unique_ptr<gguf_context, GgufDeleter>;

Owned make_adapter_metadata(const Model & model, float alpha) {
    Owned gguf(gguf_init_empty());
    gguf_set_val_str(gguf.get(), "general.type", "adapter");
    gguf_set_val_str(
        gguf.get(), "general.architecture", gguf_string(model.header().gguf.get(), "general.architecture").c_str());
    gguf_set_val_str(gguf.get(), "adapter.type", "lora");
    gguf_set_val_f32(gguf.get(), "adapter.lora.alpha", alpha);
    return gguf;
}

std::vector<float> read_floats(const ggml_tensor * tensor) {
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, values.size() * sizeof(float));
    return values;
}

// `pairs` must outlive the result.
std::vector<GgufTensor> list_tensors(const std::vector<AdapterTensor> & pairs) {
    std::vector<GgufTensor> tensors;
    tensors.reserve(pairs.size());
    for (const auto & pair : pairs) tensors.push_back({pair.name, GGML_TYPE_F32, pair.shape, pair.values.data()});
    return tensors;
}

llama_adapter_lora * load_pairs(
    const Model & model, const std::vector<AdapterTensor> & pairs, float alpha, const std::string & subject) {
    const Owned gguf = make_adapter_metadata(model, alpha);
    FILE * temporary = write_gguf_to_temporary(gguf.get(), list_tensors(pairs));
    take_log_errors();
    const AssertionGuard guard(subject);
    llama_adapter_lora * adapter = llama_adapter_lora_init_from_file_ptr(model.llama(), temporary);
    std::fclose(temporary);
    if (!adapter) {
        throw Error("adapter-failed", "the adapter does not fit this model")
            .subject(subject)
            .received(take_log_errors())
            .remedy("use an adapter that was trained on this base model");
    }
    return adapter;
}

std::vector<std::string> list_weights(const llama_adapter_lora * adapter) {
    std::vector<std::string> names;
    names.reserve(adapter->ab_map.size());
    for (const auto & [name, weight] : adapter->ab_map) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
}

// Values of tensors in the order of `list_adapter_tensors`.
std::vector<AdapterTensor> read_pairs(const llama_adapter_lora * adapter, const std::vector<ggml_tensor *> & tensors) {
    std::vector<AdapterTensor> pairs;
    for (const auto & name : list_weights(adapter)) {
        for (const char * half : {".lora_a", ".lora_b"}) {
            const ggml_tensor * tensor = tensors[pairs.size()];
            pairs.push_back({name + half, shape_of(tensor), read_floats(tensor)});
        }
    }
    return pairs;
}

}  // namespace

llama_adapter_lora * load_or_create_adapter(const Model & model, const LoraOptions & options, uint32_t seed) {
    const AdapterFile file = options.path.empty()
                                 ? AdapterFile{options.alpha.value_or(16.0f), make_initial_pairs(model, options, seed)}
                                 : AdapterReader(model, options.path).read(options);
    return load_pairs(model, file.pairs, file.alpha, options.path.empty() ? "lora" : options.path);
}

llama_adapter_lora * copy_adapter(const Model & model) {
    const llama_adapter_lora * adapter = model.adapter();
    return load_pairs(model, read_pairs(adapter, list_adapter_tensors(adapter)), adapter->alpha, "lora");
}

std::vector<ggml_tensor *> list_adapter_tensors(const llama_adapter_lora * adapter) {
    std::vector<ggml_tensor *> tensors;
    for (const auto & name : list_weights(adapter)) {
        const auto & weight = adapter->ab_map.at(name);
        tensors.push_back(weight.a);
        tensors.push_back(weight.b);
    }
    return tensors;
}

std::vector<std::string> list_adapter_names(const llama_adapter_lora * adapter) {
    std::vector<std::string> names;
    for (const auto & name : list_weights(adapter))
        for (const char * half : {".lora_a", ".lora_b"}) names.push_back(name + half);
    return names;
}

std::vector<AdapterTensor> read_adapter_like(const Model & model, const std::string & path) {
    const llama_adapter_lora * adapter = model.adapter();
    LoraOptions same;
    if (adapter->alpha != 0.0f) same.alpha = adapter->alpha;
    AdapterFile file = AdapterReader(model, path).read(same);
    std::sort(file.pairs.begin(), file.pairs.end(),
        [](const AdapterTensor & a, const AdapterTensor & b) { return a.name < b.name; });
    std::vector<AdapterTensor> pairs;
    for (const auto & name : list_weights(adapter)) {
        const auto & weight = adapter->ab_map.at(name);
        for (const auto & [half, tensor] : {std::make_pair(".lora_a", weight.a), std::make_pair(".lora_b", weight.b)}) {
            const size_t at = pairs.size();
            const std::vector<int64_t> shape = shape_of(tensor);
            if (at >= file.pairs.size() || file.pairs[at].name != name + half || file.pairs[at].shape != shape) {
                throw Error("adapter-mismatch", "is shaped otherwise than the adapter that is trained")
                    .subject(path)
                    .expected(name + half + " " + describe(shape))
                    .received(at < file.pairs.size() ? file.pairs[at].name : "nothing")
                    .remedy("give a file that this run's adapter was saved to");
            }
            pairs.push_back(std::move(file.pairs[at]));
        }
    }
    if (pairs.size() != file.pairs.size()) {
        throw Error("adapter-mismatch", "adapts more weights than the adapter that is trained")
            .subject(path)
            .expected(std::to_string(pairs.size()) + " tensors")
            .received(std::to_string(file.pairs.size()));
    }
    return pairs;
}

void save_adapter_tensors(const Model & model, const std::vector<ggml_tensor *> & tensors, const std::string & path) {
    const Owned gguf = make_adapter_metadata(model, model.adapter()->alpha);
    write_gguf(path, gguf.get(), list_tensors(read_pairs(model.adapter(), tensors)));
}

void save_adapter(const Model & model, const std::string & path) {
    const llama_adapter_lora * adapter = model.adapter();
    if (!adapter) {
        throw Error("no-adapter", "the model was loaded without a LoRA adapter")
            .subject(path)
            .remedy("load it with lora: {rank, alpha}, or save the model instead");
    }
    save_adapter_tensors(model, list_adapter_tensors(adapter), path);
}

}  // namespace cria
