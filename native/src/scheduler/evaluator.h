// The llama_context: fills a batch, evaluates it and samples from it. Not thread-safe: only the scheduler's thread uses
// it, with the model's compute mutex held.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "cria/error.h"
#include "cria/model.h"
#include "cria/scheduler.h"
#include "grammar/token_pieces.h"
#include "infer/batch_rules.h"
#include "infer/decode_batch.h"
#include "infer/own_products.h"
#include "infer/sampler.h"
#include "infer/sequence.h"
#include "threads/thread_choice.h"
#include "threads/thread_pool.h"
#include "threads/worker_threads.h"

namespace cria {

// A request's result of an evaluation: a token, or logits to sample from later.
struct Drawn {
    SampledToken token{};
    std::shared_ptr<std::vector<float>> logits;
    std::shared_ptr<std::vector<float>> prompt_end;  // the logits of the first token, for a repeat of the same prompt
    std::optional<Error> error;  // set when nothing could be drawn
};

// A sequence in a batch, the output row after its last token (-1: none), and the tokens that the rows behind it assume.
// `drawn` holds the draws after the last token, and after each drafted one up to the first that was not drawn.
struct Output {
    std::shared_ptr<Sequence> sequence;
    int row;
    std::vector<int32_t> draft;
    std::vector<Drawn> drawn;
};

class Evaluator {
   public:
    // `stopping` interrupts an evaluation. Throws Error when the context cannot be created (memory, sizes).
    Evaluator(
        const Model & model, const SchedulerOptions & options, const BatchRules & rules, std::atomic<bool> & stopping);
    Evaluator(const Evaluator &) = delete;
    Evaluator & operator=(const Evaluator &) = delete;

    llama_context * context() const { return context_.get(); }
    // Returns an empty batch, of tokens or of vectors, for the next evaluation.
    DecodeBatch & start_batch(bool vectors = false);
    // Null on other devices than the CPU.
    OwnProducts * products() const { return products_.get(); }
    // Evaluates the batch and draws from each output row. Reads no field of the sequences that other threads write.
    // Returns false if llama.cpp could not evaluate it. `seconds` is llama.cpp's time.
    bool run(std::vector<Output> & outputs, double & seconds);
    // Draws what follows the last token of an admitted sequence: a sampled token, or the logits for a request that only
    // evaluates.
    Drawn draw(const Sequence & sequence, const float * logits);

   private:
    struct FreeContext {
        void operator()(llama_context * context) const;
    };

    void draw_all(std::vector<Output> & outputs);
    // The same when the request has sampled `ahead` more tokens than its result holds.
    Drawn draw(const Sequence & sequence, const float * logits, size_t ahead, Sampler & sampler);
    // Draws within a grammar: a token, the logits if the text is complete and no token ends it, or an error.
    Drawn draw_allowed(Request & request, const float * logits);

    const Model & model_;
    const bool keeps_prompt_ends_, has_grids_;
    const int n_vocab_;
    std::unique_ptr<WorkerThreads> workers_;
    std::vector<Sampler> samplers_;  // one for each thread
    std::unique_ptr<TokenPieces> pieces_;  // made for the first grammar
    std::unique_ptr<OwnProducts> products_;
    std::unique_ptr<ThreadPool> pool_;
    ThreadChoice choice_;
    std::unique_ptr<DecodeBatch> token_batch_, vector_batch_;  // the latter is created for the first image
    DecodeBatch * batch_ = nullptr;  // one of the two
    std::unique_ptr<llama_context, FreeContext> context_;  // last: it uses the others, so it is destroyed first
};

}  // namespace cria
