#include "cria/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "assertions.h"
#include "cria/error.h"
#include "cria/runtime.h"
#include "infer/batch_rules.h"
#include "infer/decode_batch.h"
#include "infer/own_products.h"
#include "infer/row_plan.h"
#include "infer/sampler.h"
#include "infer/sequence.h"
#include "infer/sequence_store.h"
#include "infer/thread_pool.h"
#include "llama-model.h"
#include "llama.h"

// KV layout: split streams (kv_unified = false), one per slot, because with a unified cache every token attends over the
// cells of all conversations. llama.cpp puts sequences into one physical batch only when their stream ids are
// consecutive and their token counts equal; so decode steps take exactly one token per slot in slot order, sequences change
// slots when too many holes lie between those that decode, small holes are filled with a padding row that is removed again,
// and prefill runs in batches of its own.
// What a sequence is computed from then never depends on its neighbours: each stream attends to its own cells, and a row's
// results do not depend on how many rows there are. Our own products (own_products.h) see to that; those left to ggml need at
// least two rows (a single one takes another kernel), or eight for K-quants, so batches and prefill chunks are padded up to
// that. The KV of a token is then a function of the tokens up to it, whether it was evaluated in a prompt or after being
// sampled, and any prefix that lies in some slot may be taken over.

namespace cria {

namespace {

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Prompt tokens evaluated between two decode steps, over all sequences.
constexpr int kPrefillPerStep = 4096;
// Evaluations of fewer floating-point operations (some 5 ms of one core) leave a core to the event loop, which has texts to
// render and tools to call meanwhile: threads that compute meet at every operation, and all wait for one that lost its core.
constexpr double kSmallEvaluation = 2.5e8;
// An idle scheduler lets a burst of submissions arrive, for what came first would be decoded alone and the others behind
// it: it waits until none came for this share of an evaluation, at most so many shares.
constexpr double kQuietShare = 0.02;
constexpr int kMostQuietShares = 10;

// What a request gets after an evaluation: a token, or the logits that somebody will sample from later.
struct Drawn {
    SampledToken token{};
    std::shared_ptr<std::vector<float>> logits;
    std::shared_ptr<std::vector<float>> prompt_end;  // the logits that the first token came from, for the same prompt again
};

// Gives the lock back while it lives, also when an exception leaves its scope.
class Unlocked {
   public:
    explicit Unlocked(std::unique_lock<std::mutex> & lock) : lock_(lock) { lock_.unlock(); }
    ~Unlocked() { lock_.lock(); }
    Unlocked(const Unlocked &) = delete;
    Unlocked & operator=(const Unlocked &) = delete;

   private:
    std::unique_lock<std::mutex> & lock_;
};

Error describe_failed_decode(const std::string & what) { return Error("decode-failed", "could not evaluate " + what).subject("llama_decode"); }

ggml_type parse_kv_type(const std::string & name) {
    if (name == "f32") return GGML_TYPE_F32;
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "q8_0") return GGML_TYPE_Q8_0;
    throw Error("bad-option", "is not a KV type").subject("kvType").expected("\"f32\", \"f16\" or \"q8_0\"").received('"' + name + '"');
}

}  // namespace

struct Scheduler::Impl {
    std::shared_ptr<Model> model;
    SchedulerOptions options;
    llama_context * context = nullptr;
    int n_vocab = 0, n_batch = 0;
    BatchRules rules;

    mutable std::mutex mutex;  // guards everything below but what the thread alone uses while it decodes
    std::condition_variable wake;
    std::atomic<bool> stopping{false};
    std::deque<std::shared_ptr<Sequence>> waiting;   // submitted, without a slot yet
    std::vector<std::shared_ptr<Sequence>> running;  // admitted
    std::vector<std::function<void()>> flushes;
    SchedulerStats totals;

    std::unique_ptr<OwnProducts> products;
    std::unique_ptr<SequenceStore> store;
    std::unique_ptr<DecodeBatch> batch;
    std::unique_ptr<ThreadPool> pool;
    Sampler sampler;
    std::thread thread;

    Impl(std::shared_ptr<Model> m, const SchedulerOptions & o) : model(std::move(m)), options(o) {
        if (o.context_size < 1 || o.max_sequences < 1 || o.max_sequences > 256) {
            throw Error("bad-option", "is out of range").subject("maxSequences, contextSize").expected("1 to 256, at least 1")
                .received(std::to_string(o.max_sequences) + ", " + std::to_string(o.context_size));
        }
        n_vocab = llama_vocab_n_tokens(model->vocab());
        rules = choose_batch_rules(*model, o);
        // Enough streams for the padding rows (see the top), each with cells for them.
        const int streams = rules.padded(o.max_sequences);
        n_batch = std::max({512, streams, o.prefill_chunk});
        llama_context_params params = llama_context_default_params();
        params.n_ctx = uint32_t(streams) * uint32_t((o.context_size + rules.min_rows + 255) / 256 * 256);
        params.n_batch = params.n_ubatch = uint32_t(n_batch);
        params.n_seq_max = uint32_t(streams);
        params.n_threads = params.n_threads_batch = model->threads();
        params.type_k = params.type_v = parse_kv_type(o.kv_type);
        params.flash_attn_type = *o.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
        params.kv_unified = false;
        params.no_perf = true;
        params.abort_callback = [](void * data) { return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_relaxed); };
        params.abort_callback_data = &stopping;
        if (model->on_cpu()) {
            products = std::make_unique<OwnProducts>(model->threads(), o.deterministic);
            params.cb_eval = OwnProducts::on_node;
            params.cb_eval_user_data = products.get();
        }
        if (o.kv_type == "q8_0" && !*o.flash_attention) {
            throw Error("bad-option", "needs flash attention").subject("kvType").received("\"q8_0\" with flashAttention false").remedy("set flashAttention true or \"auto\", or use \"f16\"");
        }
        take_log_errors();
        const AssertionGuard guard(model->options().path);
        context = llama_init_from_model(model->llama(), params);
        if (!context) {
            throw Error("context-failed", "the context cannot be created").subject("loadModel")
                .received(std::to_string(streams) + " sequences of " + std::to_string(o.context_size) + " tokens; " + take_log_errors())
                .remedy("lower contextSize or maxSequences: both multiply the KV cache's memory");
        }
        if (llama_adapter_lora * adapter = model->adapter()) {
            float scale = 1.0f;
            llama_set_adapters_lora(context, &adapter, 1, &scale);
        }
        pool = std::make_unique<ThreadPool>(model->threads());
        pool->attach(context);
        store = std::make_unique<SequenceStore>(context, streams, rules.sharing, o.prefill_chunk, o.swap_bytes, totals);
        batch = std::make_unique<DecodeBatch>(n_batch);
        thread = std::thread([this] { run(); });
    }

    ~Impl() {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            stopping = true;
            wake.notify_all();
        }
        thread.join();
        llama_free(context);
    }

    // ---- the scheduler thread ----

    void run() {
        std::unique_lock<std::mutex> lock(mutex);
        while (!stopping) {
            if (waiting.empty() && running.empty() && flushes.empty()) {
                wake.wait(lock);
                gather(lock);
                continue;
            }
            // The compute mutex first: an optimizer step may hold it for long, and submitters must not wait for that.
            lock.unlock();
            const std::lock_guard<FairMutex> compute(model->compute_mutex());
            lock.lock();
            const auto started = Clock::now();
            try {
                drop_aborted();
                if (!flushes.empty() && running.empty()) run_flushes();
                if (flushes.empty()) admit();
                prefill(lock);
                decode(lock);
            } catch (const std::exception & error) {
                fail_all(error.what());
            }
            totals.busy_seconds += seconds_since(started);
        }
        lock.unlock();
        const std::lock_guard<FairMutex> compute(model->compute_mutex());
        lock.lock();
        for (auto & sequence : waiting) running.push_back(sequence);
        waiting.clear();
        while (!running.empty()) finish(running.back(), FinishReason::aborted);
        run_flushes();
    }

    // Lets a burst of submissions arrive.
    void gather(std::unique_lock<std::mutex> & lock) {
        const double evaluation = totals.decode_calls > 0 ? totals.llama_seconds / double(totals.decode_calls) : 0.0;
        const auto quiet = std::chrono::duration<double>(std::clamp(kQuietShare * evaluation, 5e-5, 5e-4));
        size_t seen = 0;
        for (int i = 0; i < kMostQuietShares && seen < waiting.size() && !stopping; i++) {
            seen = waiting.size();
            lock.unlock();
            std::this_thread::sleep_for(quiet);
            lock.lock();
        }
    }

    // After an exception, for want of memory mostly: what was half done is not known, so every request in flight fails and the
    // cache is emptied. Later requests find everything in order.
    void fail_all(const std::string & reason) {
        const Error error = Error("engine-failed", "failed while this and other requests ran").subject("engine").received(reason)
            .remedy("if memory ran out, lower contextSize or maxSequences; the model can still be used");
        while (!running.empty() || !waiting.empty()) {
            const auto sequence = running.empty() ? waiting.back() : running.back();
            if (running.empty()) waiting.pop_back();
            sequence->request->result.error = error;
            settle(sequence);
        }
        store->clear();
    }

    void drop_aborted() {
        for (size_t i = 0; i < waiting.size();) {
            if (waiting[i]->request->aborted) {
                const auto sequence = waiting[i];
                running.push_back(sequence);
                waiting.erase(waiting.begin() + long(i));
                finish(sequence, FinishReason::aborted);
            } else {
                i++;
            }
        }
        for (size_t i = 0; i < running.size();) {
            if (running[i]->request->aborted) {
                finish(running[i], FinishReason::aborted);
            } else {
                i++;
            }
        }
    }

    void run_flushes() {
        store->clear();
        for (auto & done : flushes) done();
        flushes.clear();
    }

    void admit() {
        // In order of arrival; but those that hold a slot already never wait behind one that needs theirs.
        bool no_slot_left = false;
        for (size_t i = 0; i < waiting.size();) {
            auto sequence = waiting[i];
            if (sequence->slot < 0 && (no_slot_left || store->awaits_prefix(*sequence))) {
                i++;
                continue;
            }
            if (sequence->slot < 0 && !store->give_slot(*sequence)) {
                no_slot_left = true;
                i++;
                continue;
            }
            // In one of the two lists at every moment, whatever throws.
            running.push_back(sequence);
            waiting.erase(waiting.begin() + long(i));
            Request & request = *sequence->request;
            request.is_admitted = true;
            request.admitted = Clock::now();
            KvSlot & slot = store->slot_of(*sequence);
            store->touch(sequence->slot);
            // Something must be left to evaluate, unless the logits after the last token are there already.
            const size_t total = sequence->tokens.size();
            if (slot.tokens.size() == total && !sequence->next_logits) store->slots().trim(sequence->slot, total - 1);
            request.result.stats.reused_tokens = int(slot.tokens.size());
            totals.reused_tokens += slot.tokens.size();
            if (slot.tokens.size() == total) {
                // Copied: sampling may end the request, and then nobody else keeps the logits alive.
                const auto logits = sequence->next_logits;
                accept(sequence, draw(*sequence, logits->data()));
            } else {
                store->slots().promise(sequence->slot, sequence->tokens);
            }
        }
    }

    // A sequence in a batch, the output row after its last token (-1: none), and what was drawn there.
    struct Output {
        std::shared_ptr<Sequence> sequence;
        int row;
        Drawn drawn{};
    };

    // One llama_decode and the sampling of its outputs, both with the lock released. False: the requests must fail.
    bool call_llama(std::unique_lock<std::mutex> & lock, std::vector<Output> & outputs) {
        bool ok = false;
        double elapsed = 0;
        {
            const Unlocked unlocked(lock);
            const bool small = 2.0 * double(llama_model_n_params(model->llama())) * batch->size() < kSmallEvaluation;
            const int threads = small ? std::max(1, model->threads() - 1) : model->threads();
            llama_set_n_threads(context, threads, threads);
            const auto started = Clock::now();
            ok = llama_decode(context, batch->get()) == 0;
            elapsed = seconds_since(started);
            for (Output & output : outputs) {
                if (ok && output.row >= 0) output.drawn = draw(*output.sequence, llama_get_logits_ith(context, output.row));
            }
        }
        totals.llama_seconds += elapsed;
        totals.decode_calls++;
        return ok;
    }

    void fail(const std::shared_ptr<Sequence> & sequence, Error error) {
        store->slots().trim(sequence->slot, store->slot_of(*sequence).tokens.size());
        // Shutting down interrupts llama_decode: that is an abort like any other.
        if (!stopping) sequence->request->result.error = std::move(error);
        finish(sequence, FinishReason::aborted);
    }

    // Sequences with more than one token to evaluate: chunks, equal lengths together.
    void prefill(std::unique_lock<std::mutex> & lock) {
        struct Chunk {
            std::shared_ptr<Sequence> sequence;
            int length;
        };
        std::vector<Chunk> chunks;
        int budget = kPrefillPerStep;
        for (const auto & sequence : running) {
            const int pending = int(sequence->tokens.size() - store->slot_of(*sequence).tokens.size());
            const bool needs = pending > 1 || (pending == 1 && sequence->request->params.max_tokens == 0);
            if (!needs || budget <= 0) continue;
            const int length = std::min(pending, options.prefill_chunk);
            budget -= length;
            chunks.push_back({sequence, length});
        }
        std::sort(chunks.begin(), chunks.end(), [](const Chunk & a, const Chunk & b) {
            return a.length != b.length ? a.length < b.length : a.sequence->slot < b.sequence->slot;
        });
        for (size_t begin = 0; begin < chunks.size() && !stopping;) {
            batch->clear();
            std::vector<Output> outputs;  // sequence, index of its last token
            // Rows after a short chunk make it fit for the kernels of long ones; no earlier row sees them.
            const int length = chunks[begin].length, rows = rules.padded(length);
            size_t end = begin;
            for (; end < chunks.size() && chunks[end].length == length && batch->room() >= rows && (end == begin || rules.groups_prefill); end++) {
                const auto & sequence = chunks[end].sequence;
                const size_t at = store->slot_of(*sequence).tokens.size();
                const bool last = at + size_t(length) == sequence->tokens.size();
                const int first = batch->size();
                // As many output rows, for the same reason: the LM head and the last feed-forward see output rows only.
                for (int i = 0; i < rows; i++) {
                    batch->add(i < length ? sequence->tokens[at + size_t(i)] : 0, int(at) + i, sequence->slot, last && i >= std::max(0, length - rules.min_rows) && i < std::max(length, rules.min_rows));
                }
                outputs.push_back({sequence, last ? first + length - 1 : -1});
            }
            const bool ok = call_llama(lock, outputs);
            if (rows > length) totals.padding_tokens += size_t(rows - length) * outputs.size();
            for (auto & [sequence, row, drawn] : outputs) {
                if (!ok) {
                    fail(sequence, describe_failed_decode(std::to_string(length) + " prompt tokens"));
                    continue;
                }
                KvSlot & slot = store->slot_of(*sequence);
                store->slots().append(sequence->slot, sequence->tokens.data() + slot.tokens.size(), size_t(length));
                if (rows > length) store->slots().trim(sequence->slot, slot.tokens.size());
                if (drawn.prompt_end) slot.prompt_end = {slot.tokens.size(), drawn.prompt_end};
                sequence->request->result.stats.prefill_tokens += length;
                totals.prefill_tokens += uint64_t(length);
                if (row >= 0) accept(sequence, drawn);
            }
            begin = end;
        }
    }

    // One token for each sequence that has exactly one to evaluate.
    void decode(std::unique_lock<std::mutex> & lock) {
        std::vector<std::shared_ptr<Sequence>> decoding;
        std::vector<bool> active(size_t(store->slots().count()));
        for (const auto & sequence : running) {
            if (sequence->tokens.size() - store->slot_of(*sequence).tokens.size() != 1) continue;
            decoding.push_back(sequence);
            active[size_t(sequence->slot)] = true;
        }
        if (decoding.empty() || stopping) return;
        if (store->slots().can_swap()) {
            for (const auto & [from, to] : plan_swaps(active)) {
                store->swap_slots(from, to);
                active[size_t(from)] = false;
                active[size_t(to)] = true;
            }
        }
        std::sort(decoding.begin(), decoding.end(), [](const auto & a, const auto & b) { return a->slot < b->slot; });
        const std::vector<int> padding = plan_padding(active, rules.min_rows, rules.row_step);
        batch->clear();
        std::vector<Output> outputs;
        size_t p = 0;
        const auto pad_until = [&](int slot) {
            for (; p < padding.size() && padding[p] < slot; p++) batch->add(0, int(store->slots()[padding[p]].tokens.size()), padding[p], true);
        };
        for (const auto & sequence : decoding) {
            pad_until(sequence->slot);
            const int position = int(store->slot_of(*sequence).tokens.size());
            outputs.push_back({sequence, batch->add(sequence->tokens.back(), position, sequence->slot, true)});
        }
        pad_until(store->slots().count());
        const bool ok = call_llama(lock, outputs);
        if (!padding.empty()) {
            for (const int slot : padding) store->slots().trim(slot, store->slots()[slot].tokens.size());
            totals.padding_tokens += padding.size();
        }
        for (auto & [sequence, row, drawn] : outputs) {
            if (!ok) {
                fail(sequence, describe_failed_decode(std::to_string(outputs.size()) + " sequences"));
                continue;
            }
            store->slots().append(sequence->slot, &sequence->tokens.back(), 1);
            // The token before sampling began belongs to the prompt; later ones were sampled.
            if (sequence->request->result.token_ids.empty()) {
                if (drawn.prompt_end) store->slot_of(*sequence).prompt_end = {sequence->tokens.size(), drawn.prompt_end};
                sequence->request->result.stats.prefill_tokens++;
                totals.prefill_tokens++;
            }
            accept(sequence, drawn);
        }
    }

    // What follows the last token of an admitted sequence: a sampled token, or for a request that only wanted the evaluation
    // the logits themselves. Reads nothing that other threads write.
    Drawn draw(const Sequence & sequence, const float * logits) {
        const Request & request = *sequence.request;
        const auto copy = [&] { return std::make_shared<std::vector<float>>(logits, logits + n_vocab); };
        if (request.params.max_tokens == 0) {
            const auto kept = sequence.next_logits ? sequence.next_logits : copy();
            return {{}, kept, kept};
        }
        const bool keeps = rules.sharing == PrefixSharing::tokens && request.result.token_ids.empty() && !sequence.next_logits;
        return {sampler.sample(logits, n_vocab, request.params, request.result.token_ids.size()), nullptr, keeps ? copy() : nullptr};
    }

    // Takes what was drawn, and ends the request if that was all.
    void accept(const std::shared_ptr<Sequence> & sequence, const Drawn & drawn) {
        Request & request = *sequence->request;
        if (!request.is_decoding) {
            request.is_decoding = true;
            request.decoding = Clock::now();
            store->slots().unpromise(sequence->slot);
        }
        if (drawn.logits) {
            sequence->next_logits = drawn.logits;
            finish(sequence, FinishReason::stop);
            return;
        }
        GenerateResult & result = request.result;
        const SampledToken & sampled = drawn.token;
        // The sum over the vocabulary is in every logprob: one logit that is not finite makes it NaN.
        if (!std::isfinite(sampled.logprob)) return fail(sequence, describe_bad_logits());
        sequence->next_logits.reset();
        sequence->tokens.push_back(sampled.token);
        result.token_ids.push_back(sampled.token);
        result.logprobs.push_back(sampled.logprob);
        totals.decode_tokens++;
        const auto & stops = request.params.stop_tokens;
        bool stopped = std::find(stops.begin(), stops.end(), sampled.token) != stops.end();
        if (!stopped) stopped = request.stream.append(model->piece(sampled.token, true));
        const bool full = int(result.token_ids.size()) >= request.params.max_tokens || int(sequence->tokens.size()) >= options.context_size;
        if (request.on_text) {
            std::string ready = request.stream.take_ready(stopped || full);
            if (!ready.empty()) request.on_text(std::move(ready));
        }
        if (stopped || full) finish(sequence, stopped ? FinishReason::stop : FinishReason::length);
    }

    Error describe_bad_logits() const {
        return Error("bad-logits", "gives logits that are not finite").subject(model->options().path).expected("a number for each token")
            .received("NaN or infinity").remedy("the file's weights or the adapter's are damaged, or training diverged: go back to a good checkpoint, and lower the learning rate");
    }

    void finish(const std::shared_ptr<Sequence> & sequence, FinishReason reason) {
        Request & request = *sequence->request;
        GenerateResult & result = request.result;
        result.finish_reason = reason;
        result.text = request.stream.text();
        result.stats.decode_tokens = int(result.token_ids.size());
        const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
        const auto now = Clock::now();
        result.stats.queue_ms = milliseconds((request.is_admitted ? request.admitted : now) - request.submitted);
        if (request.is_admitted) result.stats.prefill_ms = milliseconds((request.is_decoding ? request.decoding : now) - request.admitted);
        if (request.is_decoding) result.stats.decode_ms = milliseconds(now - request.decoding);
        settle(sequence);
    }

    // Takes the request off its sequence and tells its result.
    void settle(std::shared_ptr<Sequence> sequence) {
        const std::unique_ptr<Request> request = std::move(sequence->request);
        const auto place = std::find(running.begin(), running.end(), sequence);
        if (place != running.end()) running.erase(place);
        if (sequence->slot >= 0) {
            store->touch(sequence->slot);
            store->slots().unpromise(sequence->slot);
        }
        if (sequence->disposed) store->release(*sequence);
        request->done(std::move(request->result));
        wake.notify_all();
    }

    // ---- called from any thread, with the mutex held ----

    void check_request(const Sequence & sequence, const std::vector<int32_t> & delta, const GenerateParams & params) const {
        if (sequence.request) throw Error("sequence-busy", "is still generating").subject("sequence").remedy("await the running call first");
        for (const int32_t token : delta) {
            if (token < 0 || token >= n_vocab) {
                throw Error("bad-token", "is not a token of this vocabulary").subject("deltaTokenIds").expected("0 to " + std::to_string(n_vocab - 1)).received(std::to_string(token));
            }
        }
        const size_t total = sequence.tokens.size() + delta.size();
        if (total == 0) throw Error("empty-request", "has no tokens to continue").subject("generate").expected("at least one token in the sequence or the delta");
        const size_t needed = total + size_t(std::max(0, params.max_tokens));
        if (needed > size_t(options.context_size)) {
            throw Error("context-exceeded", "the request does not fit into the context").subject("generate")
                .expected("at most " + std::to_string(options.context_size) + " tokens")
                .received(std::to_string(sequence.tokens.size()) + " in the sequence + " + std::to_string(delta.size()) + " new + " + std::to_string(params.max_tokens) +
                          " to sample = " + std::to_string(needed))
                .remedy("lower maxTokens, shorten the prompt, or load the model with a larger contextSize");
        }
    }
};

Scheduler::Scheduler(std::shared_ptr<Model> model, const SchedulerOptions & options) : impl_(std::make_unique<Impl>(std::move(model), options)) {}

Scheduler::~Scheduler() = default;

SequenceId Scheduler::create_sequence() {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    return impl_->store->create()->id;
}

SequenceId Scheduler::fork(SequenceId source) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto original = impl_->store->find(source);
    if (original->request) throw Error("sequence-busy", "is still generating").subject("sequence").remedy("await the running call before forking");
    return impl_->store->fork(*original)->id;
}

void Scheduler::dispose(SequenceId id) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto it = impl_->store->all().find(id);
    if (it == impl_->store->all().end()) return;
    if (it->second->request) {
        it->second->disposed = true;
        it->second->request->aborted = true;
        impl_->wake.notify_all();
    } else {
        const auto sequence = it->second;
        impl_->store->release(*sequence);
        impl_->wake.notify_all();
    }
}

void Scheduler::reset(SequenceId id) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto sequence = impl_->store->find(id);
    if (sequence->request) throw Error("sequence-busy", "is still generating").subject("sequence").remedy("await the running call before resetting");
    impl_->store->reset(*sequence);
}

int Scheduler::token_count(SequenceId id) const {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    return int(impl_->store->find(id)->tokens.size());
}

std::vector<int32_t> Scheduler::tokens(SequenceId id) const {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    return impl_->store->find(id)->tokens;
}

RequestId Scheduler::submit(SequenceId id, std::vector<int32_t> delta, GenerateParams params, std::function<void(GenerateResult)> done,
                            std::function<void(std::string)> on_text) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto sequence = impl_->store->find(id);
    if (sequence->disposed) throw Error("unknown-sequence", "was disposed").subject("sequence");
    impl_->check_request(*sequence, delta, params);
    auto request = std::make_unique<Request>();
    request->id = impl_->store->take_id();
    request->stream = TextStream(params.stop_strings);
    request->params = std::move(params);
    request->done = std::move(done);
    request->on_text = std::move(on_text);
    request->submitted = Clock::now();
    if (!delta.empty()) sequence->next_logits.reset();
    sequence->tokens.insert(sequence->tokens.end(), delta.begin(), delta.end());
    const RequestId request_id = request->id;
    sequence->request = std::move(request);
    impl_->waiting.push_back(sequence);
    impl_->wake.notify_all();
    return request_id;
}

void Scheduler::abort(RequestId id) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    for (auto & [key, sequence] : impl_->store->all()) {
        if (sequence->request && sequence->request->id == id) sequence->request->aborted = true;
    }
    impl_->wake.notify_all();
}

void Scheduler::flush(std::function<void()> done) {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->flushes.push_back(std::move(done));
    impl_->wake.notify_all();
}

SchedulerStats Scheduler::stats() const {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    SchedulerStats stats = impl_->totals;
    stats.sequences = impl_->store->all().size();
    for (const auto & [id, sequence] : impl_->store->all()) stats.resident_sequences += sequence->slot >= 0 ? 1 : 0;
    stats.requests = impl_->waiting.size() + impl_->running.size();
    stats.swapped_bytes = impl_->store->swapped_bytes();
    return stats;
}

}  // namespace cria
