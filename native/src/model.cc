#include "cria/model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "adapter_file.h"
#include "architecture.h"
#include "assertions.h"
#include "check_model_header.h"
#include "check_tensors.h"
#include "cpu/tensor_products.h"
#include "cria/backends.h"
#include "cria/error.h"
#include "cria/gguf_file.h"
#include "cria/runtime.h"
#include "cria/scheduler_defaults.h"
#include "llama-model.h"
#include "llama.h"

namespace cria {

namespace {

// Whether llama.cpp may repack weights for its own products (its "extra buffer types"). Only where it repacks a type
// that our products do not multiply: theirs must be plain, and a file has several types. And not in a model with
// stateful layers: their rows come by sequence, in a third axis, and ggml's AMX products (0.25.1) compute those of the
// first sequence and leave the others unwritten.
bool gains_by_repacking(const GgufHeader & header) {
    bool gains = false;
    for (ggml_tensor * t = ggml_get_first_tensor(header.tensors.get()); t;
        t = ggml_get_next_tensor(header.tensors.get(), t)) {
        const std::string name = t->name;
        for (const char * part : {".ssm_", ".shortconv.", ".time_mix_"})
            if (name.find(part) != std::string::npos) return false;
        gains = gains || (t->ne[1] > 1 && !has_own_product(t->type) && t->type != GGML_TYPE_Q3_K);
    }
    return gains;
}

// RoPE turns pairs of a head's dimensions. With another number of dimensions it asserts on ggml's threads, and with
// none it never ends; llama.cpp checks the number for few architectures.
void check_rotated_dimensions(const llama_hparams & hparams, const std::string & path) {
    if (hparams.rope_type == LLAMA_ROPE_TYPE_NONE) return;
    for (uint32_t layer = 0; layer < hparams.n_layer(); layer++) {
        const uint32_t rotated = hparams.n_rot(layer), head_size = hparams.n_embd_head_k(layer);
        if (head_size == 0 || (rotated > 0 && rotated % 2 == 0 && rotated <= head_size)) continue;
        const bool has_own = hparams.is_swa(layer) && hparams.n_rot_swa != hparams.n_rot_full;
        throw Error("bad-model", "has a wrong number of dimensions for RoPE to rotate")
            .subject(path)
            .expected(std::string("an even rope.dimension_count") + (has_own ? "_swa" : "") + " of 2 to " +
                      std::to_string(head_size) + ", the size of a head")
            .received(std::to_string(rotated) + " in layer " + std::to_string(layer))
            .remedy("the file is damaged or badly converted: fetch or convert it again");
    }
}

}  // namespace

std::shared_ptr<Model> Model::load(const ModelOptions & options) {
    start_runtime();
    std::shared_ptr<Model> model(new Model());
    model->options_ = options;
    model->threads_ = options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    model->header_ = std::make_unique<GgufHeader>(read_gguf(options.path, false));
    check_model_header(model->header_->gguf.get(), options.path);
    check_tensor_types(*model->header_, options.path);
    const std::string arch = gguf_string(model->header_->gguf.get(), "general.architecture");
    if (options.trainable != Trainable::none) check_trainable_architecture(arch, options.path);

    llama_model_params params = llama_model_default_params();
    ggml_backend_dev_t devices[] = {select_device(options.device), nullptr};
    model->device_ = devices[0];
    model->on_cpu_ = ggml_backend_dev_type(devices[0]) == GGML_BACKEND_DEVICE_TYPE_CPU;
    ggml_backend_dev_t no_devices[] = {nullptr};
    params.devices = model->on_cpu_ ? no_devices : devices;
    params.n_gpu_layers = model->on_cpu_ ? 0 : options.gpu_layers;
    // llama.cpp keeps the embedding on the host, and a tied output as a second tensor. The training graph needs one
    // tensor, on the device.
    const llama_model_tensor_buft_override on_device[] = {
        {"^token_embd\\.weight$", ggml_backend_dev_buffer_type(devices[0])}, {nullptr, nullptr}};
    if (!model->on_cpu_ && options.trainable != Trainable::none) params.tensor_buft_overrides = on_device;
    // Repacked weights cannot be read back row by row, and gave NaN gradients: the training graph needs plain ones.
    params.use_extra_bufts = options.trainable == Trainable::none && gains_by_repacking(*model->header_);
    // Full training writes the weights, so they must not be pages of the file.
    const bool maps = options.trainable != Trainable::full && options.reads_weights;
    params.load_mode = maps ? LLAMA_LOAD_MODE_AUTO : LLAMA_LOAD_MODE_NONE;
    params.no_alloc = !options.reads_weights;
    params.progress_callback = [](float, void * cancelled) {
        return !cancelled || !static_cast<std::atomic<bool> *>(cancelled)->load();
    };
    params.progress_callback_user_data = options.cancelled.get();
    take_log_errors();
    const AssertionGuard guard(options.path);
    model->model_ = llama_model_load_from_file(options.path.c_str(), params);
    if (!model->model_) {
        throw Error("load-failed", "llama.cpp cannot load this model")
            .subject(options.path)
            .received(take_log_errors())
            .remedy("check that the file is a complete model of an architecture that llama.cpp " CRIA_LLAMA_RELEASE
                    " knows");
    }
    model->mend_epsilon();
    check_rotated_dimensions(model->model_->hparams, options.path);
    const int generated =
        options.context_size > 0 ? options.context_size : default_context_size(llama_model_n_ctx_train(model->model_));
    const int context_size = std::max(generated, options.scored_context_size);
    model->choose_rope_factors(context_size);
    model->vectors_ = std::make_unique<VectorTable>(
        llama_vocab_n_tokens(model->vocab()), size_t(llama_model_n_embd_inp(model->model_)));
    model->list_weights();
    if (options.trainable != Trainable::none) {
        model->architecture_ =
            std::make_unique<Architecture>(describe_architecture(model->model_, model->weights_, options.path));
        model->check_window(context_size);
        if (options.trainable == Trainable::full) model->check_full_training();
    }
    if (options.lora) model->adapter_ = load_or_create_adapter(*model, *options.lora, options.seed);
    return model;
}

void check_trainable(const std::string & path, int context_size) {
    ModelOptions options;
    options.path = path;
    options.device = "cpu";
    options.trainable = Trainable::lora;
    options.context_size = context_size;
    options.reads_weights = false;
    Model::load(options);
}

Model::Model() = default;

Model::~Model() {
    // The adapter is registered with the model and freed by it.
    if (model_) llama_model_free(model_);
    ggml_free(weight_tensors_);
}

bool is_constant(const std::string & weight_name) { return weight_name.rfind("rope_", 0) == 0; }

void Model::list_weights() {
    const auto & own = llama_internal_get_tensor_map(model_);
    if (options_.trainable == Trainable::full) {
        weight_tensors_ = ggml_init({own.size() * ggml_tensor_overhead(), nullptr, true});
        if (!weight_tensors_) throw std::bad_alloc();
    }
    for (const auto & [name, tensor] : own) {
        ggml_tensor * weight = tensor;
        if (weight_tensors_) {
            weight = ggml_dup_tensor(weight_tensors_, tensor);
            ggml_set_name(weight, tensor->name);
            weight->buffer = tensor->buffer;
            weight->data = tensor->data;
            weight->extra = tensor->extra;
        }
        weights_.push_back({name, weight});
    }
}

ggml_tensor * Model::find_weight(const std::string & name) const {
    for (const Weight & weight : weights_)
        if (weight.name == name) return weight.tensor;
    return nullptr;
}

// This release of llama.cpp leaves qwen2vl's epsilon at zero, whatever its file says: a token whose hidden state is
// zero would become NaN.
void Model::mend_epsilon() {
    const int64_t id = gguf_find_key(header_->gguf.get(), "qwen2vl.attention.layer_norm_rms_epsilon");
    if (id < 0 || gguf_get_kv_type(header_->gguf.get(), id) != GGUF_TYPE_FLOAT32) return;
    model_->hparams.f_norm_rms_eps = gguf_get_val_f32(header_->gguf.get(), id);
}

// LongRoPE (arXiv:2402.13753) has factors for contexts of the original length, and others for longer ones. llama.cpp
// chooses by the size of its cache, which is padded beyond the context, and a trainer has no cache: it is given one
// choice.
void Model::choose_rope_factors(int context_size) {
    const bool is_long = uint32_t(context_size) > model_->hparams.n_ctx_orig_yarn;
    for (auto & layer : model_->layers)
        (is_long ? layer.rope_short : layer.rope_long) = is_long ? layer.rope_long : layer.rope_short;
}

void Model::check_window(int context_size) const {
    const int64_t window = architecture_->ignored_window;
    if (window == 0 || context_size <= window) return;
    throw Error("unsupported-architecture",
        "has a sliding window that llama.cpp leaves out, so that longer contexts are not what the model was made for")
        .subject(options_.path)
        .expected("contextSize at most " + std::to_string(window) + ", its window")
        .received(std::to_string(context_size))
        .remedy("lower contextSize, or load it with trainable \"none\" to generate only");
}

void Model::check_full_training() const {
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model_)) {
        if (tensor->type != GGML_TYPE_F32) {
            throw Error("unsupported-type", "full training needs F32 weights")
                .subject(options_.path)
                .expected("every tensor F32")
                .received(name + " is " + ggml_type_name(tensor->type))
                .remedy("train a LoRA adapter instead (trainable \"lora\"), or convert the model to F32");
        }
    }
}

std::string Model::device_kind() const { return name_kind(device_); }

const llama_vocab * Model::vocab() const { return llama_model_get_vocab(model_); }

std::vector<int32_t> Model::tokenize(const std::string & text, bool parse_special) const {
    // The caller adds BOS: deltas are tokenized far more often than whole prompts.
    std::vector<int32_t> tokens(text.size() + 8);
    int n =
        llama_tokenize(vocab(), text.data(), int(text.size()), tokens.data(), int(tokens.size()), false, parse_special);
    if (n < 0) {
        tokens.resize(size_t(-n));
        n = llama_tokenize(
            vocab(), text.data(), int(text.size()), tokens.data(), int(tokens.size()), false, parse_special);
    }
    if (n < 0)
        throw Error("tokenize-failed", "the text cannot be tokenized")
            .subject("tokenize")
            .received(std::to_string(text.size()) + " bytes");
    tokens.resize(size_t(n));
    return tokens;
}

std::vector<SpecialToken> Model::special_tokens() const {
    std::vector<SpecialToken> tokens;
    const int control = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;
    for (int32_t id = 0; id < llama_vocab_n_tokens(vocab()); id++) {
        const int attributes = llama_vocab_get_attr(vocab(), id);
        if (!(attributes & (control | LLAMA_TOKEN_ATTR_USER_DEFINED))) continue;
        tokens.push_back({id, llama_vocab_get_text(vocab(), id), (attributes & control) != 0,
            (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0, (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
    }
    return tokens;
}

std::string Model::piece(int32_t token, bool special) const {
    char small[64];
    int n = llama_token_to_piece(vocab(), token, small, sizeof small, 0, special);
    if (n >= 0) return std::string(small, size_t(n));
    std::string large(size_t(-n), '\0');
    n = llama_token_to_piece(vocab(), token, large.data(), int(large.size()), 0, special);
    large.resize(size_t(std::max(n, 0)));
    return large;
}

std::string Model::detokenize(const std::vector<int32_t> & tokens, bool special) const {
    std::string text;
    const int n_vocab = llama_vocab_n_tokens(vocab());
    for (const int32_t token : tokens) {
        if (vectors_->knows(token)) continue;
        if (token < 0 || token >= n_vocab) {
            throw Error("bad-token", "is not a token of this vocabulary")
                .subject("detokenize")
                .expected("0 to " + std::to_string(n_vocab - 1))
                .received(std::to_string(token));
        }
        text += piece(token, special);
    }
    return text;
}

}  // namespace cria
