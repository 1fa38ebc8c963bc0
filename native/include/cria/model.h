// A loaded GGUF model: weights, vocabulary, and the LoRA adapter that rollout and training share.
// Ownership: held by shared_ptr; the scheduler and the trainer each keep one, so weights outlive both.
// Threads: load and the accessors are safe from any thread; weights are guarded by compute_mutex().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cria/fair_mutex.h"
#include "cria/vector_table.h"

struct llama_model;
struct llama_vocab;
struct llama_adapter_lora;
struct ggml_context;
struct ggml_tensor;
struct ggml_backend_device;

namespace cria {

struct Architecture;
struct GgufHeader;

enum class Trainable { none, lora, full };

struct LoraOptions {
    // Unset: 8 and 16 for a new adapter. An adapter from a file must match the values that are set.
    std::optional<int> rank;
    std::optional<float> alpha;
    // Short tensor names ("attn_q", "ffn_down", "output"). Empty: every linear layer of the blocks, or the targets of
    // the file.
    std::vector<std::string> targets;
    // An adapter GGUF to start from; empty: A random, B zero.
    std::string path;
};

// For checks without a GPU: training then runs on the CPU in the way it would on a device.
struct EmulatedDevice {
    std::string kernels;  // library of our device kernels for the CPU; empty: ggml's operations
    std::vector<std::string> refused;  // ggml's names of operations that the emulated device claims to lack
    // Library whose `bool cria_device_supports(const ggml_tensor *)` tells which nodes it computes; empty: all others.
    std::string operations;
};

struct ModelOptions {
    std::string path;
    std::string device = "auto";  // "auto" | "cpu" | "cuda" | "metal" | "vulkan"
    int gpu_layers = -1;  // -1: all
    int threads = 0;  // 0: all physical cores that the process may use
    Trainable trainable = Trainable::none;
    std::optional<LoraOptions> lora;
    uint32_t seed = 0;  // for the adapter's initial values
    // Most tokens of a sequence that is generated, as the scheduler has it (0: default_context_size), and of one that
    // is only scored or trained on. Models with factors of RoPE for long contexts choose by the larger one.
    int context_size = 0, scored_context_size = 0;
    std::optional<EmulatedDevice> emulated_device;
    bool reads_weights = true;  // false: only their names, types and shapes, for checks
    std::shared_ptr<std::atomic<bool>> cancelled;  // loading stops soon after it becomes true; may be null
};

// A token that is cut out of a text before the rest is tokenized: control tokens, the unknown token and the
// vocabulary's user-defined words.
struct SpecialToken {
    int32_t id;
    std::string text;
    bool control;
    bool strip_left, strip_right;  // also removes adjacent whitespace
};

struct Weight {
    std::string name;
    ggml_tensor * tensor;
};

// Whether a weight is a constant of the model, which no training changes: factors of RoPE.
bool is_constant(const std::string & weight_name);

class Model {
   public:
    // Throws Error: file-not-found, not-gguf, truncated, unsupported-architecture, unsupported-type, bad-option, ...
    static std::shared_ptr<Model> load(const ModelOptions & options);
    ~Model();
    Model(const Model &) = delete;
    Model & operator=(const Model &) = delete;

    llama_model * llama() const { return model_; }
    const llama_vocab * vocab() const;
    // The adapter, or nullptr. Its scale is 1 in every context that applies it.
    llama_adapter_lora * adapter() const { return adapter_; }
    // The weights as they are now, each once. With full training these are tensors of their own, which lie where
    // llama.cpp's lay when it loaded the model; the scheduler points llama.cpp's at the version that it evaluates.
    const std::vector<Weight> & weights() const { return weights_; }
    // Null if there is none of this name.
    ggml_tensor * find_weight(const std::string & name) const;
    int threads() const { return threads_; }
    const ModelOptions & options() const { return options_; }
    bool on_cpu() const { return on_cpu_; }
    ggml_backend_device * device() const { return device_; }
    // "cpu", "cuda", "metal" or "vulkan".
    std::string device_kind() const;
    // A message for the user about how this model runs, for example that "auto" does not use the GPU or that kernels do
    // not run; else empty.
    std::string notice;
    // Shapes and weights by role; null unless trainable.
    const Architecture * architecture() const { return architecture_.get(); }
    // The GGUF's metadata, as it was at load.
    const GgufHeader & header() const { return *header_; }

    // Held while the scheduler decodes and samples, and for each optimizer step or other write to weights. A step may
    // take long: never wait for it while holding a lock that the event loop needs.
    FairMutex & compute_mutex() CRIA_RETURN_CAPABILITY(compute_mutex_) { return compute_mutex_; }

    // Vectors of images that sequences and micro-batches may hold.
    VectorTable & vectors() const { return *vectors_; }

    std::vector<int32_t> tokenize(const std::string & text, bool parse_special) const;
    std::vector<SpecialToken> special_tokens() const;
    // Vectors of images have no text.
    std::string detokenize(const std::vector<int32_t> & tokens, bool special) const;
    // Bytes of one token as they appear in text; special tokens give "" unless `special`.
    std::string piece(int32_t token, bool special) const;

   private:
    Model();
    void check_full_training() const;
    void mend_epsilon();
    void list_weights();
    void choose_rope_factors(int context_size);
    void check_window(int context_size) const;

    ModelOptions options_;
    llama_model * model_ = nullptr;
    llama_adapter_lora * adapter_ = nullptr;  // owned by llama_model, freed with it
    int threads_ = 1;
    bool on_cpu_ = true;
    ggml_backend_device * device_ = nullptr;
    std::vector<Weight> weights_;
    ggml_context * weight_tensors_ = nullptr;  // of full training
    std::unique_ptr<Architecture> architecture_;
    std::unique_ptr<GgufHeader> header_;
    std::unique_ptr<VectorTable> vectors_;
    FairMutex compute_mutex_;
};

// Facts about a loaded model.
struct ModelFacts {
    std::string architecture, name;  // from the metadata; empty when it lacks them
    int64_t parameter_count = 0;
    int vocab_size = 0, embedding_size = 0, layer_count = 0, head_count = 0, kv_head_count = 0, head_size = 0;
    int training_context_size = 0;
    std::optional<int32_t> bos_token, eos_token;
    std::vector<int32_t> end_of_generation_tokens;
    bool adds_bos = false;
    std::map<std::string, int> weight_types;  // number of tensors by ggml's name of their type
    std::optional<std::string> chat_template;
};

ModelFacts describe_model(const Model & model);

// Throws what Model::load would throw of this file with trainable "lora" on the CPU, but reads only its header.
void check_trainable(const std::string & path, int context_size);

// Values of general.architecture that can be trained.
std::vector<std::string> list_trainable_architectures();

// Writes the adapter's current values as a GGUF that llama.cpp's --lora loads.
// Throws Error("no-adapter" | "write-failed").
void save_adapter(const Model & model, const std::string & path);

// Writes the base model's current weights with the metadata of the original file. Throws Error("unsupported-tensor" |
// "write-failed").
void save_model(const Model & model, const std::string & path);

}  // namespace cria
