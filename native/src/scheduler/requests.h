// Requests in flight, from submission to result: those that wait for a slot of the KV cache, and those that have one.
// Not thread-safe: guarded by the scheduler's mutex. What ends a request also changes slots' contents.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cria/error.h"
#include "cria/model.h"
#include "infer/sequence.h"
#include "infer/sequence_store.h"
#include "scheduler/evaluator.h"

namespace cria {

class Requests {
   public:
    // Counts sampled tokens in `totals`. While `stopping`, what fails is an abort like any other.
    Requests(const Model & model, int context_size, SequenceStore & store, SchedulerStats & totals,
        const std::atomic<bool> & stopping);

    // In order of arrival; without a slot, but for sequences that kept theirs.
    const std::deque<std::shared_ptr<Sequence>> & waiting() const { return waiting_; }
    // Admitted: each has a slot.
    const std::vector<std::shared_ptr<Sequence>> & running() const { return running_; }
    size_t count() const { return waiting_.size() + running_.size(); }

    void submit(const std::shared_ptr<Sequence> & sequence, std::unique_ptr<Request> request);
    // The i-th that waits runs from now on: it has a slot.
    void start(size_t i);
    // Takes what was drawn for a running request, and ends it if that was all.
    void accept(const std::shared_ptr<Sequence> & sequence, const Drawn & drawn);
    // Ends a running request whose batch llama.cpp could not evaluate; `what` was in it.
    void fail_evaluation(const std::shared_ptr<Sequence> & sequence, const std::string & what);
    // Ends those that were told to.
    void drop_aborted();
    void abort_all();
    // Each ends with the error.
    void fail_all(const Error & error);

   private:
    void finish(const std::shared_ptr<Sequence> & sequence, FinishReason reason);
    void fail(const std::shared_ptr<Sequence> & sequence, Error error);
    // Takes the request off its sequence and tells its result.
    void settle(std::shared_ptr<Sequence> sequence);

    const Model & model_;
    const int context_size_;
    SequenceStore & store_;
    SchedulerStats & totals_;
    const std::atomic<bool> & stopping_;
    // A sequence with a request is in one of the two at every moment, whatever throws.
    std::deque<std::shared_ptr<Sequence>> waiting_;
    std::vector<std::shared_ptr<Sequence>> running_;
};

}  // namespace cria
