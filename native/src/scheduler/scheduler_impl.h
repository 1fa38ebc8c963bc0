// The scheduler's parts. Public methods (scheduler.cc) enqueue under the mutex. One thread (scheduler_thread.cc) takes
// step after step: it admits requests, evaluates prompts (prefill.cc), then one token for each sequence that decodes,
// or more that may follow (decode.cc).
//
// KV layout: split streams (kv_unified = false), one per slot, because with a unified cache every token attends over
// the cells of all conversations. llama.cpp puts sequences into one physical batch only when their stream ids are
// consecutive and their token counts equal. So decode steps take equally many tokens per slot in slot order, sequences
// change slots when there are too many holes between those that decode, small holes are filled with padding rows that
// are removed again, and prefill runs in separate batches.
//
// A sequence's results then never depend on its neighbours: each stream attends to its own cells, and a row's results
// do not depend on the number of rows. Our own products (own_products.h) ensure this; those left to ggml need at least
// two rows (a single one uses another kernel), or eight for some types, so batches and prefill chunks are padded to
// that number. The KV of a token is then a function of the tokens up to it, whether it was evaluated in a prompt or
// after being sampled, and any prefix in any slot may be taken over. Also a token that was only assumed to follow, when
// sampling draws it: drafts (drafter.h) are rows behind a sequence's last token. What was not drawn is removed again.
// Where drafts differ in length, or a hole between slots is filled, our products leave out the rows that hold nothing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cria/mutex.h"
#include "cria/scheduler.h"
#include "grammar/grammar_cache.h"
#include "scheduler/weight_versions.h"
#include "infer/batch_rules.h"
#include "infer/draft_length.h"
#include "infer/drafter.h"
#include "infer/sequence_store.h"
#include "scheduler/evaluator.h"
#include "scheduler/requests.h"

namespace cria {

// Consecutive rows of a batch whose sequences are of one version.
struct VersionRows {
    PolicyVersion version;
    int64_t count;
};

struct Scheduler::Impl {
    Impl(std::shared_ptr<Model> model, const SchedulerOptions & options);
    ~Impl();

    const std::shared_ptr<Model> model;
    const SchedulerOptions options;
    const TokenPlaces places;
    const BatchRules rules;
    std::atomic<bool> stopping{false};

    // The compute mutex comes first: an optimizer step may hold it for long, and submitters must not wait for that.
    Mutex mutex CRIA_ACQUIRED_AFTER(model->compute_mutex());
    Condition wake;  // something was submitted or flushed, or the scheduler is stopping
    // The role of the scheduler's thread.
    ThreadRole scheduler_thread;

    SchedulerStats totals CRIA_GUARDED_BY(mutex);
    Evaluator evaluator CRIA_GUARDED_BY(scheduler_thread);
    WeightVersions versions CRIA_GUARDED_BY(model->compute_mutex());
    // Changing slots' contents also needs the compute mutex.
    SequenceStore store CRIA_GUARDED_BY(mutex);
    Drafter drafter CRIA_GUARDED_BY(mutex);
    DraftLength draft_length CRIA_GUARDED_BY(scheduler_thread);
    Requests requests CRIA_GUARDED_BY(mutex);
    std::vector<std::function<void()>> flushes CRIA_GUARDED_BY(mutex);
    // Sequences to dispose of. The event loop disposes of many at once, and must not wait each time while this thread
    // plans an evaluation under the mutex.
    Mutex disposals_mutex CRIA_ACQUIRED_AFTER(mutex);
    std::vector<SequenceId> disposals CRIA_GUARDED_BY(disposals_mutex);
    GrammarCache grammars;  // has its own lock

    std::thread thread;  // last: starts when the rest exists

    // ---- called from any thread ----

    void settle_disposals() CRIA_REQUIRES(mutex);
    void check_fits(const Sequence & sequence, size_t delta, int max_tokens) const CRIA_REQUIRES(mutex);
    void check_request(const Sequence & sequence, const std::vector<int32_t> & delta,
        const GenerateParams & params) const CRIA_REQUIRES(mutex);

    // ---- the scheduler's thread ----

    void run();
    // Returns false when the scheduler stops.
    bool wait_for_work() CRIA_EXCLUDES(mutex);
    // Waits for a burst of submissions to arrive.
    void gather() CRIA_REQUIRES(mutex);
    void take_step() CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    void admit() CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    // Evaluates sequences with more than one token to evaluate, or with vectors: chunks of one kind, equal lengths
    // together.
    void prefill() CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    // Evaluates the last token of each sequence that has exactly one to evaluate, and drafts behind it: of all versions
    // in one batch, or of one after the other.
    void decode() CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    // The same for these sequences. Returns false, and evaluates nothing, if they are of several versions and
    // would be more than one physical batch.
    bool decode(std::vector<std::shared_ptr<Sequence>> decoding)
        CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    // Drafts for each of these sequences, at most `room` tokens.
    std::vector<std::vector<DraftToken>> list_drafts(
        const std::vector<std::shared_ptr<Sequence>> & sequences, int room) const CRIA_REQUIRES(mutex);
    // Takes what was drawn for a sequence that decoded, and removes the rows of its draft, of `length` tokens, that
    // nothing came of.
    void accept(const Output & output, int length) CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    // Evaluates the evaluator's batch, whose rows are of these versions, with the mutex released meanwhile. Returns
    // false if the requests must fail.
    bool evaluate(std::vector<Output> & outputs, const std::vector<VersionRows> & rows)
        CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    bool is_running_live() const CRIA_REQUIRES(mutex);
    void run_flushes() CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
    void fail_all(const std::string & reason) CRIA_REQUIRES(scheduler_thread, model->compute_mutex(), mutex);
};

}  // namespace cria
