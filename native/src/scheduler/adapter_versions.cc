#include "scheduler/adapter_versions.h"

#include <algorithm>
#include <new>

#include "adapter_file.h"
#include "cria/error.h"
#include "ggml-cpp.h"
#include "llama-adapter.h"
#include "llama.h"

namespace cria {

// A copy of each live tensor, in their order and where they lie.
struct AdapterVersions::Values {
    explicit Values(const std::vector<ggml_tensor *> & live);

    std::vector<ggml_context_ptr> contexts;
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::vector<ggml_tensor *> tensors;
};

AdapterVersions::Values::Values(const std::vector<ggml_tensor *> & live) : tensors(live.size()) {
    std::map<ggml_backend_buffer_type_t, ggml_context *> by_type;
    for (size_t i = 0; i < live.size(); i++) {
        ggml_context *& context = by_type[ggml_backend_buffer_get_type(live[i]->buffer)];
        if (!context) {
            context = ggml_init({live.size() * ggml_tensor_overhead(), nullptr, true});
            if (!context) throw std::bad_alloc();
            contexts.emplace_back(context);
        }
        tensors[i] = ggml_dup_tensor(context, live[i]);
    }
    for (const auto & [type, context] : by_type) {
        buffers.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
        if (!buffers.back()) throw std::bad_alloc();
    }
}

AdapterVersions::AdapterVersions(const Model & model, llama_context * context) : model_(model), context_(context) {}

AdapterVersions::~AdapterVersions() = default;

void AdapterVersions::make_stand_in() {
    llama_adapter_lora * live = model_.adapter();
    if (!live) {
        throw Error("no-adapter", "the model was loaded without a LoRA adapter")
            .subject("keepVersion")
            .remedy("load it with trainable \"lora\": versions of whole models are not kept");
    }
    llama_adapter_lora * stand_in = copy_adapter(model_);
    live_ = list_adapter_tensors(live);
    stand_in_ = list_adapter_tensors(stand_in);
    // The values that it was loaded with are not needed: its tensors point at others' from now on.
    point_at(live_);
    stand_in->bufs.clear();
    float scale = 1.0f;
    llama_set_adapters_lora(context_, &stand_in, 1, &scale);
}

void AdapterVersions::point_at(const std::vector<ggml_tensor *> & values) {
    for (size_t i = 0; i < stand_in_.size(); i++) {
        stand_in_[i]->buffer = values[i]->buffer;
        stand_in_[i]->data = values[i]->data;
    }
}

PolicyVersion AdapterVersions::keep(const std::string & path) {
    if (stand_in_.empty()) make_stand_in();
    auto values = std::make_unique<Values>(live_);
    if (path.empty()) {
        for (size_t i = 0; i < live_.size(); i++) ggml_backend_tensor_copy(live_[i], values->tensors[i]);
    } else {
        const std::vector<AdapterTensor> file = read_adapter_like(model_, path);
        for (size_t i = 0; i < file.size(); i++)
            ggml_backend_tensor_set(values->tensors[i], file[i].values.data(), 0, ggml_nbytes(values->tensors[i]));
    }
    const PolicyVersion version = next_++;
    kept_[version] = std::move(values);
    return version;
}

void AdapterVersions::drop(PolicyVersion version) {
    if (selected_ == version) select(kLivePolicy);
    kept_.erase(version);
}

const AdapterVersions::Values & AdapterVersions::values_of(PolicyVersion version) const {
    const auto kept = kept_.find(version);
    if (kept == kept_.end()) {
        throw Error("unknown-version", "is not kept, or was dropped")
            .subject("policy version")
            .received(std::to_string(version));
    }
    return *kept->second;
}

void AdapterVersions::select(PolicyVersion version) {
    if (version == selected_) return;
    point_at(version == kLivePolicy ? live_ : values_of(version).tensors);
    selected_ = version;
}

void AdapterVersions::save(PolicyVersion version, const std::string & path) const {
    save_adapter_tensors(model_, values_of(version).tensors, path);
}

ggml_tensor * AdapterVersions::find(PolicyVersion version, const std::string & name) const {
    const Values & values = values_of(version);
    const std::vector<std::string> names = list_adapter_names(model_.adapter());
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) throw Error("unknown-tensor", "is not a tensor of the adapter").subject(name);
    return values.tensors[size_t(at - names.begin())];
}

std::vector<float> AdapterVersions::read(PolicyVersion version, const std::string & name) const {
    const ggml_tensor * tensor = find(version, name);
    std::vector<float> values(size_t(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, ggml_nbytes(tensor));
    return values;
}

void AdapterVersions::write(PolicyVersion version, const std::string & name, const std::vector<float> & values) {
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
