#include "scheduler/evaluator.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "assertions.h"
#include "cria/error.h"
#include "cria/runtime.h"
#include "grammar/grammar_cache.h"
#include "llama-model.h"
#include "llama.h"

namespace cria {

namespace {

// Evaluations with fewer floating-point operations (about 5 ms of one core) leave a core to the event loop, which
// renders texts and calls tools meanwhile. The computing threads meet at every operation, and all of them wait for one
// that lost its core.
constexpr double kSmallEvaluation = 2.5e8;

// Logits of a batch from which on threads share the drawing: waking them costs as much as some 50,000.
constexpr int64_t kSharedDraws = 200000;

ggml_type parse_kv_type(const std::string & name) {
    if (name == "f32") return GGML_TYPE_F32;
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "q8_0") return GGML_TYPE_Q8_0;
    throw Error("bad-option", "is not a KV type")
        .subject("loadModel.kvType")
        .expected("\"f32\", \"f16\" or \"q8_0\"")
        .received('"' + name + '"');
}

}  // namespace

Evaluator::Evaluator(
    const Model & model, const SchedulerOptions & options, const BatchRules & rules, std::atomic<bool> & stopping)
    : model_(model), keeps_prompt_ends_(rules.sharing == PrefixSharing::tokens), has_grids_(rules.cuts.keeps_runs),
      n_vocab_(llama_vocab_n_tokens(model.vocab())), choice_(model.on_cpu() ? model.threads() : 1) {
    // Enough streams for the padding rows (see scheduler_impl.h), each with cells for them.
    const int streams = rules.padded(options.max_sequences);
    const int n_batch = std::max({512, streams, options.prefill_chunk});
    llama_context_params params = llama_context_default_params();
    params.n_ctx = uint32_t(streams) * uint32_t((options.context_size + rules.min_rows + 255) / 256 * 256);
    params.n_batch = params.n_ubatch = uint32_t(n_batch);
    params.n_seq_max = uint32_t(streams);
    params.n_threads = params.n_threads_batch = model.threads();
    params.type_k = params.type_v = parse_kv_type(options.kv_type);
    const bool flash_attention = options.flash_attention.value_or(false);
    params.flash_attn_type = flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.kv_unified = false;
    params.swa_full = true;  // a prefix that is shared or returned to needs cells that have left the window
    params.no_perf = true;
    params.abort_callback = [](void * data) {
        return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_relaxed);
    };
    params.abort_callback_data = &stopping;
    if (model.on_cpu()) {
        products_ = std::make_unique<OwnProducts>(model.threads(), options.deterministic);
        params.cb_eval = OwnProducts::on_node;
        params.cb_eval_user_data = products_.get();
    }
    if (options.kv_type == "q8_0" && !flash_attention) {
        throw Error("bad-option", "needs flash attention")
            .subject("loadModel.kvType")
            .received("\"q8_0\" with flashAttention false")
            .remedy("set flashAttention true or \"auto\", or use \"f16\"");
    }
    take_log_errors();
    const AssertionGuard guard(model.options().path);
    context_.reset(llama_init_from_model(model.llama(), params));
    if (!context_) {
        throw Error("context-failed", "the context cannot be created")
            .subject("loadModel")
            .received(std::to_string(streams) + " sequences of " + std::to_string(options.context_size) + " tokens; " +
                      take_log_errors())
            .remedy("lower contextSize or maxSequences: both multiply the KV cache's memory");
    }
    if (llama_adapter_lora * adapter = model.adapter()) {
        float scale = 1.0f;
        llama_set_adapters_lora(context(), &adapter, 1, &scale);
    }
    pool_ = std::make_unique<ThreadPool>(model.threads());
    pool_->attach(context());
    workers_ = std::make_unique<WorkerThreads>(model.threads());
    samplers_.resize(size_t(workers_->count()));
    token_batch_ = std::make_unique<DecodeBatch>(n_batch, 0, false);
}

DecodeBatch & Evaluator::start_batch(bool vectors) {
    if (vectors && !vector_batch_)
        vector_batch_ =
            std::make_unique<DecodeBatch>(int(llama_n_batch(context())), model_.vectors().width(), has_grids_);
    batch_ = vectors ? vector_batch_.get() : token_batch_.get();
    batch_->clear();
    return *batch_;
}

void Evaluator::FreeContext::operator()(llama_context * context) const { llama_free(context); }

bool Evaluator::run(std::vector<Output> & outputs, double & seconds) {
    const bool small = 2.0 * double(llama_model_n_params(model_.llama())) * batch_->size() < kSmallEvaluation;
    // Evaluations of as many rows, up to a factor of two, are of a kind.
    const int threads = choice_.choose(
        uint64_t(std::ilogb(batch_->size())), small ? std::max(1, model_.threads() - 1) : model_.threads());
    llama_set_n_threads(context(), threads, threads);
    const auto started = Clock::now();
    const bool ok = llama_decode(context(), batch_->get()) == 0;
    llama_synchronize(context());
    seconds = std::chrono::duration<double>(Clock::now() - started).count();
    if (!ok) return false;
    choice_.note(seconds);
    draw_all(outputs);
    return true;
}

// Requests with a grammar share what is known of it: they come first, on this thread.
void Evaluator::draw_all(std::vector<Output> & outputs) {
    struct Rows {
        Output * output;
        std::vector<const float *> logits;  // after its last token, and after each drafted one
    };
    std::vector<Rows> free;
    for (Output & output : outputs) {
        if (output.row < 0) continue;
        Rows rows{&output, {}};
        for (int i = 0; i <= int(output.draft.size()); i++)
            rows.logits.push_back(llama_get_logits_ith(context(), output.row + i));
        if (output.sequence->request->grammar) output.drawn.push_back(draw(*output.sequence, rows.logits.front()));
        else free.push_back(std::move(rows));
    }
    const auto draw_rows = [&](int item, int thread) {
        const auto & [output, logits] = free[size_t(item)];
        for (size_t i = 0; i < logits.size(); i++) {
            if (i > 0 && output->drawn.back().token.token != output->draft[i - 1]) break;
            output->drawn.push_back(draw(*output->sequence, logits[i], i, samplers_[size_t(thread)]));
        }
    };
    if (int64_t(free.size()) * n_vocab_ >= kSharedDraws && free.size() > 1) {
        workers_->run(int(free.size()), draw_rows);
    } else {
        for (int item = 0; item < int(free.size()); item++) draw_rows(item, 0);
    }
}

Drawn Evaluator::draw(const Sequence & sequence, const float * logits) {
    return draw(sequence, logits, 0, samplers_.front());
}

Drawn Evaluator::draw(const Sequence & sequence, const float * logits, size_t ahead, Sampler & sampler) {
    Request & request = *sequence.request;
    const auto copy = [&] { return std::make_shared<std::vector<float>>(logits, logits + n_vocab_); };
    if (request.params.max_tokens == 0) {
        const auto kept = sequence.next_logits ? sequence.next_logits : copy();
        return {{}, kept, kept};
    }
    const size_t index = request.result.token_ids.size() + ahead;
    const bool keeps = keeps_prompt_ends_ && index == 0 && !sequence.next_logits;
    if (request.grammar) {
        Drawn drawn = draw_allowed(request, logits);
        if (keeps) drawn.prompt_end = copy();
        return drawn;
    }
    return {sampler.sample(logits, n_vocab_, request.params, index), nullptr, keeps ? copy() : nullptr};
}

// Any failure affects only this request.
Drawn Evaluator::draw_allowed(Request & request, const float * logits) {
    Drawn drawn;
    try {
        if (!pieces_) pieces_ = std::make_unique<TokenPieces>(list_token_pieces(model_));
        const auto & sampled = request.result.token_ids;
        const TokenMask & mask = request.grammar->allowed(request.grammar_position, sampled, *pieces_);
        std::vector<uint64_t> allowed = mask.bits;
        const auto set = [&](int32_t token, bool is_allowed) {
            const uint64_t bit = uint64_t(1) << (token % 64);
            uint64_t & word = allowed[size_t(token) / 64];
            word = is_allowed ? word | bit : word & ~bit;
        };
        for (const int32_t token : pieces_->ends()) set(token, mask.may_end);
        // Control tokens that end this request also end the text, and are not part of it.
        for (const int32_t token : request.params.stop_tokens) {
            if (token >= 0 && token < n_vocab_ && llama_vocab_is_control(model_.vocab(), token))
                set(token, mask.may_end);
        }
        const bool is_empty = std::all_of(allowed.begin(), allowed.end(), [](uint64_t word) { return word == 0; });
        if (!is_empty) {
            drawn.token = samplers_.front().sample_allowed(logits, n_vocab_, request.params, sampled.size(), allowed);
        } else if (mask.may_end) {
            drawn.logits = std::make_shared<std::vector<float>>(logits, logits + n_vocab_);
        } else {
            drawn.error = Error("grammar-dead-end", "allows nothing that the vocabulary could write")
                              .subject("generate.grammar")
                              .expected("a token that goes on")
                              .received("none after " + std::to_string(sampled.size()) + " tokens")
                              .remedy("write the grammar so that each alternative can be read to its end");
        }
    } catch (const Error & error) {
        drawn.error = error;
    } catch (const std::bad_alloc &) {
        drawn.error = Error("grammar-too-complex", "needs more memory than there is").subject("generate.grammar");
    }
    return drawn;
}

}  // namespace cria
