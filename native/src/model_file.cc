#include "model_file.h"

#include <map>
#include <set>

#include "cria/error.h"
#include "cria/gguf_file.h"
#include "ggml-backend.h"
#include "gguf.h"
#include "system/files.h"

namespace cria {

namespace {

std::string describe_tensor(const ggml_tensor * tensor) {
    std::string text = std::string(tensor->name) + " " + ggml_type_name(tensor->type) + " [";
    for (int i = 0; i < ggml_n_dims(tensor); i++) text += (i > 0 ? ", " : "") + std::to_string(tensor->ne[i]);
    return text + "]";
}

void check_like(const GgufHeader & file, const std::vector<Weight> & weights, const std::string & path) {
    const auto refuse = [&](const std::string & expected, const std::string & received) {
        throw Error("model-mismatch", "has not the weights of the model that is trained")
            .subject(path)
            .expected(expected)
            .received(received)
            .remedy("give a file that this run's model was saved to");
    };
    std::set<std::string> names;
    for (const auto & [name, tensor] : weights) {
        names.insert(name);
        const ggml_tensor * in_file = ggml_get_tensor(file.tensors.get(), name.c_str());
        if (!in_file) refuse(describe_tensor(tensor), "no such tensor");
        if (in_file->type != tensor->type || !ggml_are_same_shape(in_file, tensor))
            refuse(describe_tensor(tensor), describe_tensor(in_file));
    }
    for (ggml_tensor * t = ggml_get_first_tensor(file.tensors.get()); t;
        t = ggml_get_next_tensor(file.tensors.get(), t))
        if (!is_constant(t->name) && !names.count(t->name)) refuse("no such tensor", describe_tensor(t));
}

}  // namespace

void save_model(const Model & model, const std::string & path) { save_model_with(model, {}, path); }

void save_model_with(const Model & model, const std::vector<Weight> & weights, const std::string & path) {
    std::map<std::string, const ggml_tensor *> others;
    for (const auto & [name, tensor] : weights) others[name] = tensor;
    const GgufHeader & header = model.header();
    const GgufPtr gguf(gguf_init_empty());
    gguf_set_kv(gguf.get(), header.gguf.get());
    // In the order of the original file, and only its tensors (a tied output is not a second tensor).
    std::vector<std::vector<uint8_t>> copies;
    std::vector<GgufTensor> tensors;
    for (ggml_tensor * t = ggml_get_first_tensor(header.tensors.get()); t;
        t = ggml_get_next_tensor(header.tensors.get(), t)) {
        const auto other = others.find(t->name);
        const ggml_tensor * weight = other == others.end() ? model.find_weight(t->name) : other->second;
        if (!weight) {
            throw Error("unsupported-tensor", "a tensor of the file is not part of the loaded model")
                .subject(model.options().path)
                .received(t->name);
        }
        const void * data = weight->data;
        if (!ggml_backend_buffer_is_host(weight->buffer)) {
            copies.emplace_back(ggml_nbytes(weight));
            ggml_backend_tensor_get(weight, copies.back().data(), 0, copies.back().size());
            data = copies.back().data();
        }
        tensors.push_back({t->name, weight->type, {weight->ne, weight->ne + ggml_n_dims(weight)}, data});
    }
    write_gguf(path, gguf.get(), tensors);
}

void read_model_into(const std::vector<Weight> & weights, const std::string & path) {
    const GgufHeader header = read_gguf(path, false);
    check_like(header, weights, path);
    const FilePtr file(open_file(path, "rb"));
    std::vector<uint8_t> values;
    for (const auto & [name, tensor] : weights) {
        const size_t place =
            gguf_get_data_offset(header.gguf.get()) +
            gguf_get_tensor_offset(header.gguf.get(), gguf_find_tensor(header.gguf.get(), name.c_str()));
        values.resize(ggml_nbytes(tensor));
        if (!file || !seek_file(file.get(), place) ||
            std::fread(values.data(), 1, values.size(), file.get()) != values.size()) {
            throw Error("truncated", "ends before the values of a weight").subject(path).received(name);
        }
        ggml_backend_tensor_set(tensor, values.data(), 0, values.size());
    }
}

}  // namespace cria
