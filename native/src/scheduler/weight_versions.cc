#include "scheduler/weight_versions.h"

#include <algorithm>
#include <new>

#include "adapter_file.h"
#include "cria/error.h"
#include "ggml-cpp.h"
#include "llama-adapter.h"
#include "llama-model.h"
#include "llama.h"
#include "model_file.h"

namespace cria {

// A copy of each live tensor, in their order and where they lie.
struct WeightVersions::Values {
    explicit Values(const std::vector<ggml_tensor *> & live);
    std::vector<Weight> list() const;

    std::vector<ggml_context_ptr> contexts;
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::vector<ggml_tensor *> tensors;
};

WeightVersions::Values::Values(const std::vector<ggml_tensor *> & live) : tensors(live.size()) {
    std::map<ggml_backend_buffer_type_t, ggml_context *> by_type;
    for (size_t i = 0; i < live.size(); i++) {
        ggml_context *& context = by_type[ggml_backend_buffer_get_type(live[i]->buffer)];
        if (!context) {
            context = ggml_init({live.size() * ggml_tensor_overhead(), nullptr, true});
            if (!context) throw std::bad_alloc();
            contexts.emplace_back(context);
        }
        tensors[i] = ggml_dup_tensor(context, live[i]);
        ggml_set_name(tensors[i], live[i]->name);
    }
    for (const auto & [type, context] : by_type) {
        buffers.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
        if (!buffers.back()) throw std::bad_alloc();
        // llama.cpp computes where the weights are.
        ggml_backend_buffer_set_usage(buffers.back().get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
}

std::vector<Weight> WeightVersions::Values::list() const {
    std::vector<Weight> named;
    for (ggml_tensor * tensor : tensors) named.push_back({tensor->name, tensor});
    return named;
}

WeightVersions::WeightVersions(const Model & model, llama_context * context) : model_(model), context_(context) {}

WeightVersions::~WeightVersions() = default;

void WeightVersions::list_tensors() {
    if (llama_adapter_lora * adapter = model_.adapter()) return stand_in_for_adapter(adapter);
    if (model_.options().trainable != Trainable::full) {
        throw Error("not-trainable", "the model was loaded for generation only")
            .subject("keepVersion")
            .expected("trainable \"lora\" or \"full\"")
            .received("trainable \"none\"")
            .remedy("load it with trainable \"lora\" and lora: {rank, alpha}, or \"full\"");
    }
    for (const auto & [name, tensor] : model_.weights()) {
        if (is_constant(name)) continue;
        names_.push_back(name);
        live_.push_back(tensor);
        stand_in_.push_back(const_cast<ggml_tensor *>(model_.llama()->get_tensor(name.c_str())));
    }
}

void WeightVersions::stand_in_for_adapter(llama_adapter_lora * live) {
    llama_adapter_lora * stand_in = copy_adapter(model_);
    names_ = list_adapter_names(live);
    live_ = list_adapter_tensors(live);
    stand_in_ = list_adapter_tensors(stand_in);
    // The values that it was loaded with are not needed: its tensors point at others' from now on.
    point_at(live_);
    stand_in->bufs.clear();
    float scale = 1.0f;
    llama_set_adapters_lora(context_, &stand_in, 1, &scale);
}

void WeightVersions::point_at(const std::vector<ggml_tensor *> & values) {
    for (size_t i = 0; i < stand_in_.size(); i++) {
        stand_in_[i]->buffer = values[i]->buffer;
        stand_in_[i]->data = values[i]->data;
    }
}

PolicyVersion WeightVersions::keep(const std::string & path) {
    if (stand_in_.empty()) list_tensors();
    auto values = std::make_shared<Values>(live_);
    if (path.empty()) {
        for (size_t i = 0; i < live_.size(); i++) ggml_backend_tensor_copy(live_[i], values->tensors[i]);
    } else {
        read_file(*values, path);
    }
    const PolicyVersion version = next_++;
    kept_[version] = std::move(values);
    return version;
}

void WeightVersions::read_file(Values & values, const std::string & path) const {
    if (!model_.adapter()) return read_model_into(values.list(), path);
    const std::vector<AdapterTensor> file = read_adapter_like(model_, path);
    for (size_t i = 0; i < file.size(); i++)
        ggml_backend_tensor_set(values.tensors[i], file[i].values.data(), 0, ggml_nbytes(values.tensors[i]));
}

void WeightVersions::drop(PolicyVersion version) {
    if (selected_ == version) select(kLivePolicy);
    kept_.erase(version);
}

std::shared_ptr<const WeightVersions::Values> WeightVersions::share(PolicyVersion version) const {
    const auto kept = kept_.find(version);
    if (kept == kept_.end()) {
        throw Error("unknown-version", "is not kept, or was dropped")
            .subject("policy version")
            .received(std::to_string(version));
    }
    return kept->second;
}

const std::vector<ggml_tensor *> & WeightVersions::values_of(PolicyVersion version) const {
    return version == kLivePolicy ? live_ : share(version)->tensors;
}

void WeightVersions::select(PolicyVersion version) {
    if (version == selected_) return;
    point_at(values_of(version));
    selected_ = version;
}

void WeightVersions::save(const Model & model, const Values & values, const std::string & path) {
    if (model.adapter()) save_adapter_tensors(model, values.tensors, path);
    else save_model_with(model, values.list(), path);
}

ggml_tensor * WeightVersions::find(PolicyVersion version, const std::string & name) const {
    const auto values = share(version);
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) throw Error("unknown-tensor", "is not a trained tensor").subject(name);
    return values->tensors[size_t(at - names_.begin())];
}

std::vector<float> WeightVersions::read(PolicyVersion version, const std::string & name) const {
    const ggml_tensor * tensor = find(version, name);
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, ggml_nbytes(tensor));
    return values;
}

void WeightVersions::write(PolicyVersion version, const std::string & name, const std::vector<float> & values) {
    ggml_tensor * tensor = find(version, name);
    if (values.size() != size_t(ggml_nelements(tensor))) {
        throw Error("bad-tensor", "cannot be written")
            .subject(name)
            .expected(std::to_string(ggml_nelements(tensor)) + " values")
            .received(std::to_string(values.size()));
    }
    ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
}

}  // namespace cria
