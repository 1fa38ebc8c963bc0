// Continuous batching over one llama_context: sequences, requests, sampling, stops, logprobs, eviction.
// Threads: one scheduler thread owns the context and everything in it; public methods enqueue and return at once.
// Callbacks run on the scheduler thread and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cria/error.h"
#include "cria/model.h"
#include "cria/policy_version.h"

namespace cria {

// Drafts of tokens that earlier texts suggest: none, as many as save time, or all that there are (for tests: measured
// times would decide what they try).
enum class Drafting { never, measured, always };

struct SchedulerOptions {
    int context_size = 0;  // most tokens of one sequence; 0: as the model allows (scheduler_defaults.h)
    int max_sequences = 8;  // resident KV slots; more sequences may exist, idle ones are evicted
    std::string kv_type = "f32";  // "f32" | "f16" | "q8_0"
    std::optional<bool> flash_attention;  // none: fill_defaults() decides (scheduler_defaults.h)
    int prefill_chunk = 512;  // most prompt tokens of one sequence between two decode steps
    // A sequence's results then depend only on its tokens, bit for bit: not on the sequences that run at the same time,
    // nor on which request evaluated its prefix. Weights that ggml multiplies are then
    // evaluated by two rows at least, or eight.
    bool deterministic = true;
    // A prompt takes over the KV of any sequence, also a finished one, that begins with the same tokens. Never changes
    // the results of a deterministic scheduler: where rows depend on their batch, only whole prefill chunks are shared.
    bool prefix_reuse = true;
    // Decode steps also evaluate tokens that earlier texts suggest (infer/drafter.h) where this saves time; sampling
    // decides. Never changes the results of a deterministic scheduler, which drafts only where a row's bits do not
    // depend on its batch.
    Drafting drafting = Drafting::measured;
    size_t swap_bytes = size_t(1) << 30;  // host memory for the KV of evicted sequences; beyond it they are recomputed
};

struct GenerateParams {
    int max_tokens = 1;  // 0: evaluate the delta only (prefill), sample nothing
    float temperature = 1.0f;
    float top_p = 1.0f;
    int top_k = 0;
    float min_p = 0.0f;
    uint32_t seed = 0;
    std::vector<int32_t> stop_tokens;
    std::vector<std::string> stop_strings;
    std::optional<std::string> grammar;  // GBNF
    int top_logprobs = 0;  // number of most likely tokens to report with each sampled token
};

enum class FinishReason { stop, length, aborted };

struct GenerateStats {
    int prefill_tokens = 0;  // evaluated for this request before it sampled
    int reused_tokens = 0;  // in the cache already when the request began: its own, or taken over
    int decode_tokens = 0;  // sampled
    double queue_ms = 0, prefill_ms = 0, decode_ms = 0;
};

struct GenerateResult {
    std::vector<int32_t> token_ids;
    std::vector<float> logprobs;
    std::vector<uint8_t> constrained;  // with a grammar: 1 where it removed probability (kTakenShare, sampler.h)
    // The most likely `top_logprobs` tokens for each sampled token, by falling logprob; token -1 where the grammar
    // allowed fewer.
    std::vector<int32_t> top_tokens;
    std::vector<float> top_logprobs;
    FinishReason finish_reason = FinishReason::stop;
    std::optional<std::string> stop_string;  // the stop string that ended the text
    std::string text;
    GenerateStats stats;
    // Set when the request failed; the other fields are then meaningless.
    std::optional<Error> error;
};

// Totals since the scheduler started, and its current state.
struct SchedulerStats {
    uint64_t prefill_tokens = 0, reused_tokens = 0, decode_tokens = 0, padding_tokens = 0, moved_sequences = 0,
             decode_calls = 0, evictions = 0, restores = 0, recomputed_tokens = 0;
    uint64_t draft_tokens = 0, accepted_draft_tokens = 0;  // evaluated before they were sampled, and sampled then
    double llama_seconds = 0;  // inside llama_decode
    double busy_seconds = 0;  // whole steps: scheduling, llama_decode, sampling, stops; excludes waiting for work
    // Current state: sequences that were not disposed, those of them that hold a KV slot, requests in flight, and bytes
    // of KV saved outside the cache.
    uint64_t sequences = 0, resident_sequences = 0, requests = 0, swapped_bytes = 0;
};

using SequenceId = uint64_t;
using RequestId = uint64_t;

class Scheduler {
   public:
    // Throws Error when the context cannot be created (memory, sizes).
    Scheduler(std::shared_ptr<Model> model, const SchedulerOptions & options);
    // Aborts running requests and joins the thread.
    ~Scheduler();

    // Whether a sampled token's logprob has the bits that the trainer computes for it: both use the same code for every
    // product, attention and sum. False for a model that only generates.
    bool samples_as_trained() const;

    // Throws Error("unknown-version").
    SequenceId create_sequence(PolicyVersion version = kLivePolicy);
    // Lets a kept version sample a sequence that is not generating from here on, with the keys and values that other
    // kept versions evaluated. Throws Error("sequence-busy" | "unknown-sequence" | "unknown-version" | "live-version").
    void take_over(SequenceId sequence, PolicyVersion version);
    // Copies a sequence that is not generating. Throws Error("sequence-busy") / ("unknown-sequence").
    SequenceId fork(SequenceId source);
    // Aborts a running request of the sequence.
    void dispose(SequenceId sequence);
    // Forgets the tokens of a sequence that is not generating: its next request must send the whole prompt. Its KV
    // stays until the space is needed. Throws as fork does.
    void reset(SequenceId sequence);
    int token_count(SequenceId sequence) const;
    std::vector<int32_t> tokens(SequenceId sequence) const;

    // Checks that a request with `delta` new tokens may be submitted, before the vectors of its images exist. Throws
    // Error("sequence-busy" | "unknown-sequence" | "empty-request" | "context-exceeded").
    void check_fits(SequenceId sequence, size_t delta, int max_tokens) const;

    // `done` is called exactly once. `on_text` (may be empty) gets whole UTF-8 characters as they are sampled.
    // Throws Error at once for an invalid request: sequence-busy, unknown-sequence, bad-option, context-exceeded (with
    // numbers), empty request, bad-grammar.
    RequestId submit(SequenceId sequence, std::vector<int32_t> delta, GenerateParams params,
        std::function<void(GenerateResult)> done, std::function<void(std::string)> on_text);
    // Ends the request at the next step; its tokens so far are kept. Unknown ids are ignored.
    void abort(RequestId request);
    // Forgets the KV of the live policy (its weights changed). Its sequences keep their tokens and are re-evaluated on
    // their next request. Its requests in flight finish first; then `done` is called.
    void flush(std::function<void()> done);

    // Keeps a copy of the trained weights, or of a file that save_version wrote for weights shaped like them, for
    // sequences that are sampled with it while the live ones are trained. Waits for a running optimizer step and a
    // running evaluation. Throws Error("not-trainable" | "adapter-mismatch" | "model-mismatch" | ...).
    PolicyVersion keep_version(const std::string & path = "");
    // Frees it. Throws Error("version-in-use" | "unknown-version").
    void drop_version(PolicyVersion version);
    // Writes it as a GGUF: an adapter, or the whole model.
    void save_version(PolicyVersion version, const std::string & path);
    // Values of one of its trained tensors. Writing forgets what was evaluated with it.
    // Throws Error("unknown-version" | "unknown-tensor" | "bad-tensor"), writing also Error("version-in-use").
    std::vector<float> read_version(PolicyVersion version, const std::string & name);
    void write_version(PolicyVersion version, const std::string & name, const std::vector<float> & values);

    SchedulerStats stats() const;

   private:
    struct Impl;
    class Settled;
    std::unique_ptr<Impl> impl_;
};

}  // namespace cria
