#include "scheduler/requests.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "llama.h"

namespace cria {

namespace {

Error describe_bad_logits(const Model & model) {
    return Error("bad-logits", "gives logits that are not finite")
        .subject(model.options().path)
        .expected("a number for each token")
        .received("NaN or infinity")
        .remedy(
            "the file's weights or the adapter's are damaged, or training diverged: go back to a good checkpoint, and "
            "lower the learning rate");
}

}  // namespace

Requests::Requests(const Model & model, int context_size, SequenceStore & store, Drafter & drafter,
    SchedulerStats & totals, const std::atomic<bool> & stopping)
    : model_(model), context_size_(context_size), store_(store), drafter_(drafter), totals_(totals),
      stopping_(stopping) {}

void Requests::submit(const std::shared_ptr<Sequence> & sequence, std::unique_ptr<Request> request) {
    sequence->request = std::move(request);
    auto place = waiting_.end();
    while (place != waiting_.begin() && (*std::prev(place))->version > sequence->version) --place;
    waiting_.insert(place, sequence);
}

void Requests::start(size_t i) {
    const auto sequence = waiting_[i];
    running_.push_back(sequence);
    waiting_.erase(waiting_.begin() + long(i));
    sequence->request->is_admitted = true;
    sequence->request->admitted = Clock::now();
}

void Requests::accept(const std::shared_ptr<Sequence> & sequence, const Drawn & drawn) {
    Request & request = *sequence->request;
    if (!request.is_decoding) {
        request.is_decoding = true;
        request.decoding = Clock::now();
        store_.slots().unpromise(sequence->slot);
    }
    if (drawn.error) return fail(sequence, *drawn.error);
    if (drawn.logits) {
        sequence->next_logits = drawn.logits;
        finish(sequence, FinishReason::stop);
        return;
    }
    GenerateResult & result = request.result;
    const SampledToken & sampled = drawn.token;
    // Every logprob contains the sum over the vocabulary: one logit that is not finite makes it NaN.
    if (!std::isfinite(sampled.logprob)) return fail(sequence, describe_bad_logits(model_));
    sequence->next_logits.reset();
    sequence->tokens.push_back(sampled.token);
    drafter_.observe(sequence->tokens, sequence->tokens.size() - 1, sequence->tokens.size());
    result.token_ids.push_back(sampled.token);
    result.logprobs.push_back(sampled.logprob);
    for (int i = 0; i < request.params.top_logprobs; i++) {
        const bool exists = size_t(i) < sampled.top.size();
        result.top_tokens.push_back(exists ? sampled.top[size_t(i)].token : -1);
        result.top_logprobs.push_back(exists ? sampled.top[size_t(i)].logprob : 0.0f);
    }
    totals_.decode_tokens++;
    const auto & stops = request.params.stop_tokens;
    bool stopped = std::find(stops.begin(), stops.end(), sampled.token) != stops.end();
    if (request.grammar) {
        result.constrained.push_back(sampled.constrained ? 1 : 0);
        // The grammar allowed it because the text is complete and nothing can follow.
        stopped = stopped || llama_vocab_is_eog(model_.vocab(), sampled.token);
    }
    if (!stopped) stopped = request.stream.append(model_.piece(sampled.token, true));
    const bool full =
        int(result.token_ids.size()) >= request.params.max_tokens || int(sequence->tokens.size()) >= context_size_;
    if (request.on_text) {
        std::string ready = request.stream.take_ready(stopped || full);
        if (!ready.empty()) request.on_text(std::move(ready));
    }
    if (stopped || full) finish(sequence, stopped ? FinishReason::stop : FinishReason::length);
}

void Requests::fail_evaluation(const std::shared_ptr<Sequence> & sequence, const std::string & what) {
    store_.slots().remove_failed(sequence->slot);
    fail(sequence, Error("decode-failed", "could not evaluate " + what).subject("llama_decode"));
}

void Requests::fail(const std::shared_ptr<Sequence> & sequence, Error error) {
    store_.slots().trim(sequence->slot, store_.slot_of(*sequence).tokens.size());
    // Shutting down interrupts llama_decode.
    if (!stopping_) sequence->request->result.error = std::move(error);
    finish(sequence, FinishReason::aborted);
}

void Requests::drop_aborted() {
    for (size_t i = 0; i < waiting_.size();) {
        if (waiting_[i]->request->aborted) {
            const auto sequence = waiting_[i];
            running_.push_back(sequence);
            waiting_.erase(waiting_.begin() + long(i));
            finish(sequence, FinishReason::aborted);
        } else {
            i++;
        }
    }
    for (size_t i = 0; i < running_.size();) {
        if (running_[i]->request->aborted) {
            finish(running_[i], FinishReason::aborted);
        } else {
            i++;
        }
    }
}

void Requests::abort_all() {
    for (auto & sequence : waiting_) running_.push_back(sequence);
    waiting_.clear();
    while (!running_.empty()) finish(running_.back(), FinishReason::aborted);
}

void Requests::fail_all(const Error & error) {
    while (count() > 0) {
        const auto sequence = running_.empty() ? waiting_.back() : running_.back();
        if (running_.empty()) waiting_.pop_back();
        sequence->request->result.error = error;
        settle(sequence);
    }
}

void Requests::finish(const std::shared_ptr<Sequence> & sequence, FinishReason reason) {
    Request & request = *sequence->request;
    GenerateResult & result = request.result;
    result.finish_reason = reason;
    result.text = request.stream.text();
    result.stop_string = request.stream.stop();
    result.stats.decode_tokens = int(result.token_ids.size());
    const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
    const auto now = Clock::now();
    result.stats.queue_ms = milliseconds((request.is_admitted ? request.admitted : now) - request.submitted);
    if (request.is_admitted)
        result.stats.prefill_ms = milliseconds((request.is_decoding ? request.decoding : now) - request.admitted);
    if (request.is_decoding) result.stats.decode_ms = milliseconds(now - request.decoding);
    settle(sequence);
}

// By value: the list's own pointer is removed during the call.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Requests::settle(std::shared_ptr<Sequence> sequence) {
    const std::unique_ptr<Request> request = std::move(sequence->request);
    const auto place = std::find(running_.begin(), running_.end(), sequence);
    if (place != running_.end()) running_.erase(place);
    if (sequence->slot >= 0) {
        store_.touch(sequence->slot);
        store_.slots().unpromise(sequence->slot);
    }
    if (sequence->disposed) store_.release(*sequence);
    request->done(std::move(request->result));
}

}  // namespace cria
