// Requests in flight, from submission to result: those that wait for a slot of the KV cache, and those that have one.
// Not thread-safe: guarded by the scheduler's mutex. Functions that end a request also change slots' contents.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cria/error.h"
#include "cria/model.h"
#include "infer/drafter.h"
#include "infer/sequence.h"
#include "infer/sequence_store.h"
#include "scheduler/evaluator.h"

namespace cria {

class Requests {
   public:
    // Counts sampled tokens in `totals`; `drafter` learns them. While `stopping` is true, a failure is reported as an
    // abort.
    Requests(const Model & model, int context_size, SequenceStore & store, Drafter & drafter, SchedulerStats & totals,
        const std::atomic<bool> & stopping);

    // Requests of older versions first, then in order of arrival. They have no slot, except sequences that kept theirs.
    const std::deque<std::shared_ptr<Sequence>> & waiting() const { return waiting_; }
    // Admitted requests: each has a slot.
    const std::vector<std::shared_ptr<Sequence>> & running() const { return running_; }
    size_t count() const { return waiting_.size() + running_.size(); }

    void submit(const std::shared_ptr<Sequence> & sequence, std::unique_ptr<Request> request);
    // Moves the i-th waiting request, which has a slot, to the running ones.
    void start(size_t i);
    // Takes the drawn result for a running request, and ends the request if it is complete.
    void accept(const std::shared_ptr<Sequence> & sequence, const Drawn & drawn);
    // Ends a running request whose batch llama.cpp could not evaluate; `what` describes the batch.
    void fail_evaluation(const std::shared_ptr<Sequence> & sequence, const std::string & what);
    // Ends the aborted requests.
    void drop_aborted();
    void abort_all();
    // Ends each request with the error.
    void fail_all(const Error & error);

   private:
    void finish(const std::shared_ptr<Sequence> & sequence, FinishReason reason);
    void fail(const std::shared_ptr<Sequence> & sequence, Error error);
    // Removes the request from its sequence and reports its result.
    void settle(std::shared_ptr<Sequence> sequence);

    const Model & model_;
    const int context_size_;
    SequenceStore & store_;
    Drafter & drafter_;
    SchedulerStats & totals_;
    const std::atomic<bool> & stopping_;
    // A sequence with a request is always in one of the two, even after an exception.
    std::deque<std::shared_ptr<Sequence>> waiting_;
    std::vector<std::shared_ptr<Sequence>> running_;
};

}  // namespace cria
