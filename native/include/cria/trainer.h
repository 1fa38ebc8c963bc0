// Forward, backward and optimizer steps on the same tensors that generation uses.
// Threads: one call at a time (the caller's job thread). Any thread may read tensors(), kept_layers() and step_count(),
// or set the latter, meanwhile. Steps hold Model::compute_mutex() while they run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cria/model.h"

namespace cria {

// Rows of equal length, each a tree of tokens in depth-first order: a token is followed by the tokens that continue it,
// one branch after the other. A token sees itself and its ancestors. ends[t] is the place in the row, exclusive, up to
// which tokens continue token t, so token i sees token j where j <= i < ends[j]. In an ordinary sequence every end is
// the sequence's length. Padding comes after a row's tokens; its end is 0. Every array of tokens is rows * row_length
// long, row after row.
struct MicroBatch {
    int32_t rows = 0, row_length = 0;
    std::vector<int32_t> tokens, positions, ends;
    // For each scored token: the place of the hidden state that predicts it, and its id.
    std::vector<int32_t> sources, targets;
    // Further tokens that are scored in place of each target, such as those that a teacher finds likeliest: [targets,
    // n] ids, with the same n for all. Empty: none.
    std::vector<int32_t> candidates;
    // Token ids from the vocabulary's end on are vectors of images, numbered within this batch. This lists their ids in
    // the model's VectorTable. Values must be held during forward().
    std::vector<int32_t> vectors;
    float temperature = 1.0f;
    bool adapter = true;
};

// Quantities of each target's distribution that forward() computes besides its logprob and entropy.
struct ScoreRequest {
    bool squares = false;  // the sum of the squared probabilities
    int32_t top = 0;  // this many of the most likely tokens
    int32_t top_below = 0;  // only ids below this are among them; 0: all
};

// Results of forward(), at the micro-batch's temperature. Logprobs are natural logarithms.
struct Scores {
    std::vector<float> logprobs, entropy;  // [targets]; entropy in nats
    std::vector<float> squares;  // [targets], on request
    std::vector<float> candidates;  // logprobs of MicroBatch::candidates, as long as these
    std::vector<int32_t> top_tokens;  // [targets, top] by falling logprob, ties by id, on request
    std::vector<float> top_logprobs;  // [targets, top]
};

// Gradients of a loss by the values of Scores.
struct ScoreGradients {
    std::vector<float> logprobs, entropy;  // [targets]
    std::vector<float> candidates;  // as long as MicroBatch::candidates
};

struct AdamW {  // Loshchilov & Hutter 2019, arXiv:1711.05101
    float learning_rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    float weight_decay = 0.0f;  // on matrices only
    float max_grad_norm = 0.0f;  // 0: no clipping
};

struct StepResult {
    double grad_norm = 0.0;  // global, before clipping
    bool stepped = false;  // false when the gradient was not finite: nothing was changed
};

struct TensorInfo {
    std::string name, type;
    std::vector<int64_t> shape;  // ne order, fastest axis first
    bool trainable = false;
};

struct TrainerOptions {
    size_t memory_budget = size_t(2) << 30;  // bytes for activations kept from forward to backward
    // A critic: the model predicts values instead of tokens. forward() then returns values instead of logprobs and
    // zeros instead of entropies, and computes nothing else; backward() takes dLoss/dvalue.
    bool value_head = false;
};

class Trainer {
   public:
    // Throws Error when the model is not trainable or its device lacks an operation.
    Trainer(std::shared_ptr<Model> model, const TrainerOptions & options);
    ~Trainer();

    // `keep` keeps the activations for backward() until the next forward(). Throws Error("bad-batch").
    Scores forward(const MicroBatch & batch, bool keep, const ScoreRequest & request = {});
    // Adds the gradient of the sum of the scores, each times its entry in `gradients`, to the accumulated gradients. It
    // is computed from zero and then added in F32, so that gradients computed separately add up to the same bits.
    // Throws Error("no-forward") unless forward(keep) came before.
    void backward(const ScoreGradients & gradients);
    // Norm, clipping, AdamW; then the gradients are zero again. Weights change, so cached KV is stale afterwards.
    StepResult step(const AdamW & options);
    void zero_gradients();

    // Whether attention skips pairs of tokens that do not see each other, rather than computing all pairs of a row.
    bool attends_blockwise() const;

    // Layers of the last forward(keep) whose activations were kept rather than recomputed.
    int kept_layers() const;

    std::vector<TensorInfo> tensors() const;
    // Values as floats; `what`: "value", "gradient", "moment1", "moment2". Throws Error("unknown-tensor").
    std::vector<float> read_tensor(const std::string & name, const std::string & what) const;
    // F32 tensors only. For finite differences, for resuming, and for gradients that were computed elsewhere.
    void write_tensor(const std::string & name, const std::string & what, const std::vector<float> & values);
    int64_t step_count() const;
    void set_step_count(int64_t count);

    // Ends a running call soon with Error("aborted"). Safe from any thread; reset by the next call's start.
    void request_abort();

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cria
