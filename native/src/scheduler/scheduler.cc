#include "cria/scheduler.h"

#include <algorithm>

#include "architecture.h"
#include "cria/error.h"
#include "infer/own_products.h"
#include "scheduler/scheduler_impl.h"

namespace cria {

namespace {

// Throws Error("sequence-busy").
void check_idle(const Sequence & sequence) {
    if (sequence.request)
        throw Error("sequence-busy", "is still generating").subject("sequence").remedy("await the running call first");
}

}  // namespace

// Holds the mutex, with the sequences as the callers know them: those that were disposed of are gone.
class CRIA_SCOPED_CAPABILITY Scheduler::Settled {
   public:
    explicit Settled(Impl & impl) CRIA_ACQUIRE(impl.mutex) : lock_(impl.mutex) { impl.settle_disposals(); }
    ~Settled() CRIA_RELEASE() = default;

   private:
    Locked<Mutex> lock_;
};

Scheduler::Scheduler(std::shared_ptr<Model> model, const SchedulerOptions & options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}

Scheduler::~Scheduler() = default;

bool Scheduler::samples_as_trained() const {
    const Model & model = *impl_->model;
    const SchedulerOptions & options = impl_->options;
    // Null for a model that only generates.
    const Architecture * architecture = model.architecture();
    if (!architecture || !model.on_cpu() || !options.deterministic) return false;
    if (options.kv_type != "f32" || options.flash_attention.value_or(false)) return false;
    // llama.cpp's operations advance the states of delta nets and of Mamba-2.
    return architecture->state.value_heads == 0 && OwnProducts::cover(model.llama());
}

SequenceId Scheduler::create_sequence(PolicyVersion version) {
    const Settled lock(*impl_);
    return impl_->store.create(version)->id;
}

void Scheduler::take_over(SequenceId id, PolicyVersion version) {
    const Settled lock(*impl_);
    const auto sequence = impl_->store.find(id);
    check_idle(*sequence);
    impl_->store.take_over(*sequence, version);
}

PolicyVersion Scheduler::keep_version(const std::string & path) {
    const Locked compute(impl_->model->compute_mutex());
    // Without the scheduler's mutex, which the event loop waits for.
    const PolicyVersion version = impl_->versions.keep(path);
    const Locked lock(impl_->mutex);
    impl_->store.add_version(version);
    return version;
}

void Scheduler::drop_version(PolicyVersion version) {
    const Locked compute(impl_->model->compute_mutex());
    {
        const Settled lock(*impl_);
        impl_->store.remove_version(version);
    }
    impl_->versions.drop(version);
}

void Scheduler::save_version(PolicyVersion version, const std::string & path) {
    std::shared_ptr<const WeightVersions::Values> values;
    {
        const Locked compute(impl_->model->compute_mutex());
        values = impl_->versions.share(version);
    }
    // Evaluations go on meanwhile: the file of a whole model takes long.
    WeightVersions::save(*impl_->model, *values, path);
}

std::vector<float> Scheduler::read_version(PolicyVersion version, const std::string & name) {
    const Locked compute(impl_->model->compute_mutex());
    return impl_->versions.read(version, name);
}

void Scheduler::write_version(PolicyVersion version, const std::string & name, const std::vector<float> & values) {
    const Locked compute(impl_->model->compute_mutex());
    {
        const Settled lock(*impl_);
        impl_->store.forget_version(version);
    }
    impl_->versions.write(version, name, values);
}

SequenceId Scheduler::fork(SequenceId source) {
    const Settled lock(*impl_);
    const auto original = impl_->store.find(source);
    check_idle(*original);
    return impl_->store.fork(*original)->id;
}

void Scheduler::dispose(SequenceId id) {
    // The scheduler's thread settles it before its next step, and need not wake up for it: it never waits while a
    // request runs.
    const Locked lock(impl_->disposals_mutex);
    impl_->disposals.push_back(id);
}

void Scheduler::Impl::settle_disposals() {
    std::vector<SequenceId> ids;
    {
        const Locked lock(disposals_mutex);
        ids.swap(disposals);
    }
    for (const SequenceId id : ids) {
        const auto it = store.all().find(id);
        if (it == store.all().end()) continue;
        const auto sequence = it->second;
        if (sequence->request) {
            sequence->disposed = true;
            sequence->request->aborted = true;
        } else {
            store.release(*sequence);
        }
    }
}

void Scheduler::reset(SequenceId id) {
    const Settled lock(*impl_);
    const auto sequence = impl_->store.find(id);
    check_idle(*sequence);
    impl_->store.reset(*sequence);
}

int Scheduler::token_count(SequenceId id) const {
    const Settled lock(*impl_);
    return int(impl_->store.find(id)->tokens.size());
}

std::vector<int32_t> Scheduler::tokens(SequenceId id) const {
    const Settled lock(*impl_);
    return impl_->store.find(id)->tokens;
}

RequestId Scheduler::submit(SequenceId id, std::vector<int32_t> delta, GenerateParams params,
    std::function<void(GenerateResult)> done, std::function<void(std::string)> on_text) {
    // Without the lock, because compiling a large grammar takes some milliseconds.
    const std::shared_ptr<Grammar> grammar =
        params.grammar && params.max_tokens > 0 ? impl_->grammars.find(*params.grammar) : nullptr;
    const Settled lock(*impl_);
    const auto sequence = impl_->store.find(id);
    if (sequence->disposed) throw Error("unknown-sequence", "was disposed").subject("sequence");
    impl_->check_request(*sequence, delta, params);
    auto request = std::make_unique<Request>();
    request->id = impl_->store.take_id();
    request->stream = TextStream(params.stop_strings);
    request->grammar = grammar;
    request->params = std::move(params);
    request->done = std::move(done);
    request->on_text = std::move(on_text);
    request->submitted = Clock::now();
    if (!delta.empty()) sequence->next_logits.reset();
    sequence->tokens.insert(sequence->tokens.end(), delta.begin(), delta.end());
    const RequestId request_id = request->id;
    impl_->requests.submit(sequence, std::move(request));
    impl_->wake.notify_all();
    return request_id;
}

void Scheduler::abort(RequestId id) {
    const Locked lock(impl_->mutex);
    for (auto & [key, sequence] : impl_->store.all()) {
        if (sequence->request && sequence->request->id == id) sequence->request->aborted = true;
    }
    impl_->wake.notify_all();
}

void Scheduler::flush(std::function<void()> done) {
    const Locked lock(impl_->mutex);
    impl_->flushes.push_back(std::move(done));
    impl_->wake.notify_all();
}

SchedulerStats Scheduler::stats() const {
    const Settled lock(*impl_);
    SchedulerStats stats = impl_->totals;
    stats.sequences = impl_->store.all().size();
    for (const auto & [id, sequence] : impl_->store.all()) stats.resident_sequences += sequence->slot >= 0 ? 1 : 0;
    stats.requests = impl_->requests.count();
    stats.swapped_bytes = impl_->store.swapped_bytes();
    return stats;
}

void Scheduler::check_fits(SequenceId id, size_t delta, int max_tokens) const {
    const Settled lock(*impl_);
    impl_->check_fits(*impl_->store.find(id), delta, max_tokens);
}

void Scheduler::Impl::check_fits(const Sequence & sequence, size_t delta, int max_tokens) const {
    check_idle(sequence);
    const size_t total = sequence.tokens.size() + delta;
    if (total == 0)
        throw Error("empty-request", "has no tokens to continue")
            .subject("generate")
            .expected("at least one token in the sequence or the delta");
    const size_t needed = total + size_t(std::max(0, max_tokens));
    if (needed <= size_t(options.context_size)) return;
    throw Error("context-exceeded", "the request does not fit into the context")
        .subject("generate")
        .expected("at most " + std::to_string(options.context_size) + " tokens")
        .received(std::to_string(sequence.tokens.size()) + " in the sequence + " + std::to_string(delta) + " new + " +
                  std::to_string(max_tokens) + " to sample = " + std::to_string(needed))
        .remedy("lower maxTokens, shorten the prompt, or load the model with a larger contextSize");
}

void Scheduler::Impl::check_request(
    const Sequence & sequence, const std::vector<int32_t> & delta, const GenerateParams & params) const {
    check_fits(sequence, delta.size(), params.max_tokens);
    model->vectors().check_held(delta, "deltaTokenIds");
    // A flush or an eviction may require evaluating the whole sequence again.
    if (!model->vectors().is_empty()) model->vectors().check_held(sequence.tokens, "sequence");
}

}  // namespace cria
