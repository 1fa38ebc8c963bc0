#include <algorithm>
#include <chrono>
#include <optional>

#include "cria/error.h"
#include "llama.h"
#include "scheduler/scheduler_impl.h"

namespace cria {

namespace {

// An idle scheduler waits for a burst of submissions to arrive; otherwise the first would be decoded by itself, and the
// others after it. It waits until none has come for this share of an evaluation, and for at most this many shares.
constexpr double kQuietShare = 0.02;
constexpr int kMostQuietShares = 10;

SchedulerOptions with_checked_sizes(SchedulerOptions options) {
    if (options.context_size < 1 || options.max_sequences < 1 || options.max_sequences > 256) {
        throw Error("bad-option", "is out of range")
            .subject("maxSequences, contextSize")
            .expected("1 to 256, at least 1")
            .received(std::to_string(options.max_sequences) + ", " + std::to_string(options.context_size));
    }
    return options;
}

}  // namespace

Scheduler::Impl::Impl(std::shared_ptr<Model> m, const SchedulerOptions & o)
    : model(std::move(m)), options(with_checked_sizes(o)), places(model->llama(), model->vectors()),
      rules(choose_batch_rules(*model, options, places)), evaluator(*model, options, rules, stopping),
      versions(*model, evaluator.context()),
      store(evaluator.context(), rules.padded(options.max_sequences), rules.sharing, rules.cuts, places, rules.rewinds,
          options.swap_bytes, totals),
      drafter(rules.drafts ? llama_vocab_n_tokens(model->vocab()) : 0),
      requests(*model, options.context_size, store, drafter, totals, stopping), grammars(*model),
      thread([this] { run(); }) {}

Scheduler::Impl::~Impl() {
    {
        const Locked lock(mutex);
        stopping = true;
        wake.notify_all();
    }
    thread.join();
}

void Scheduler::Impl::run() {
    const Locked role(scheduler_thread);
    while (wait_for_work()) {
        const Locked compute(model->compute_mutex());
        const Locked lock(mutex);
        take_step();
    }
    const Locked compute(model->compute_mutex());
    const Locked lock(mutex);
    requests.abort_all();
    run_flushes();
}

bool Scheduler::Impl::wait_for_work() {
    const Locked lock(mutex);
    while (!stopping && requests.count() == 0 && flushes.empty()) {
        wake.wait(mutex);
        gather();
    }
    return !stopping;
}

void Scheduler::Impl::gather() {
    const double evaluation = totals.decode_calls > 0 ? totals.llama_seconds / double(totals.decode_calls) : 0.0;
    const auto quiet = std::chrono::duration<double>(std::clamp(kQuietShare * evaluation, 5e-5, 5e-4));
    size_t seen = 0;
    for (int i = 0; i < kMostQuietShares && seen < requests.waiting().size() && !stopping; i++) {
        seen = requests.waiting().size();
        const Unlocked unlocked(mutex);
        std::this_thread::sleep_for(quiet);
    }
}

void Scheduler::Impl::take_step() {
    const auto started = Clock::now();
    try {
        settle_disposals();
        requests.drop_aborted();
        if (!flushes.empty() && !is_running_live()) run_flushes();
        admit();
        prefill();
        decode();
    } catch (const std::exception & error) {
        fail_all(error.what());
    }
    totals.busy_seconds += std::chrono::duration<double>(Clock::now() - started).count();
}

bool Scheduler::Impl::is_running_live() const {
    const auto & running = requests.running();
    return std::any_of(
        running.begin(), running.end(), [](const auto & sequence) { return sequence->version == kLivePolicy; });
}

void Scheduler::Impl::admit() {
    // Requests are admitted in the order in which they wait, but one that holds a slot never waits behind one that
    // still needs one.
    bool no_slot_left = false;
    for (size_t i = 0; i < requests.waiting().size();) {
        const auto sequence = requests.waiting()[i];
        if (!flushes.empty() && sequence->version == kLivePolicy) {
            i++;
            continue;
        }
        if (sequence->slot < 0 && (no_slot_left || store.awaits_prefix(*sequence))) {
            i++;
            continue;
        }
        if (sequence->slot < 0 && !store.give_slot(*sequence)) {
            no_slot_left = true;
            i++;
            continue;
        }
        requests.start(i);
        KvSlot & slot = store.slot_of(*sequence);
        store.touch(sequence->slot);
        // At least one token must remain to evaluate, unless the logits after the last token exist already.
        const size_t total = sequence->tokens.size();
        if (slot.tokens.size() == total && !sequence->next_logits) store.slots().trim(sequence->slot, total - 1);
        sequence->request->result.stats.reused_tokens = int(slot.tokens.size());
        totals.reused_tokens += slot.tokens.size();
        if (slot.tokens.size() == total) {
            // Copied: sampling may end the request, and then nothing else keeps the logits alive.
            const auto logits = sequence->next_logits;
            Drawn drawn;
            {
                const Unlocked unlocked(mutex);
                drawn = evaluator.draw(*sequence, logits->data());
            }
            requests.accept(sequence, drawn);
        } else {
            store.slots().promise(sequence->slot, sequence->tokens);
        }
    }
}

bool Scheduler::Impl::evaluate(std::vector<Output> & outputs, const std::vector<VersionRows> & rows) {
    std::optional<MixedFactors> mixed;
    if (rows.size() == 1) {
        versions.select(rows.front().version);
    } else {
        std::vector<FactorRows> factors;
        factors.reserve(rows.size());
        for (const auto & [version, count] : rows) factors.push_back({count, &versions.values_of(version)});
        mixed.emplace(*evaluator.products(), versions.stand_ins(), std::move(factors));
    }
    bool ok = false;
    double seconds = 0;
    {
        const Unlocked unlocked(mutex);
        ok = evaluator.run(outputs, seconds);
    }
    totals.llama_seconds += seconds;
    totals.decode_calls++;
    return ok && !(mixed && mixed->missed());
}

void Scheduler::Impl::run_flushes() {
    store.clear(kLivePolicy);
    for (auto & done : flushes) done();
    flushes.clear();
}

// Called after an exception, usually for lack of memory. The state of the work is unknown, so every request in flight
// fails and the cache is emptied. Later requests work again.
void Scheduler::Impl::fail_all(const std::string & reason) {
    requests.fail_all(Error("engine-failed", "failed while this and other requests ran")
            .subject("engine")
            .received(reason)
            .remedy("if memory ran out, lower contextSize or maxSequences; the model can still be used"));
    store.clear();
}

}  // namespace cria
