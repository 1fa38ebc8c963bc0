#include "scheduler/evaluator.h"

#include <algorithm>
#include <chrono>

#include "assertions.h"
#include "cria/error.h"
#include "cria/runtime.h"
#include "llama-model.h"
#include "llama.h"

namespace cria {

namespace {

// Evaluations of fewer floating-point operations (some 5 ms of one core) leave a core to the event loop, which renders
// texts and calls tools meanwhile: the computing threads meet at every operation, and all of them wait for one that
// lost its core.
constexpr double kSmallEvaluation = 2.5e8;

ggml_type parse_kv_type(const std::string & name) {
    if (name == "f32") return GGML_TYPE_F32;
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "q8_0") return GGML_TYPE_Q8_0;
    throw Error("bad-option", "is not a KV type")
        .subject("kvType")
        .expected("\"f32\", \"f16\" or \"q8_0\"")
        .received('"' + name + '"');
}

}  // namespace

Evaluator::Evaluator(
    const Model & model, const SchedulerOptions & options, const BatchRules & rules, std::atomic<bool> & stopping)
    : model_(model), keeps_prompt_ends_(rules.sharing == PrefixSharing::tokens),
      n_vocab_(llama_vocab_n_tokens(model.vocab())) {
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
            .subject("kvType")
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
    batch_ = std::make_unique<DecodeBatch>(n_batch);
}

void Evaluator::FreeContext::operator()(llama_context * context) const { llama_free(context); }

bool Evaluator::run(std::vector<Output> & outputs, double & seconds) {
    const bool small = 2.0 * double(llama_model_n_params(model_.llama())) * batch_->size() < kSmallEvaluation;
    const int threads = small ? std::max(1, model_.threads() - 1) : model_.threads();
    llama_set_n_threads(context(), threads, threads);
    const auto started = Clock::now();
    const bool ok = llama_decode(context(), batch_->get()) == 0;
    seconds = std::chrono::duration<double>(Clock::now() - started).count();
    if (!ok) return false;
    for (Output & output : outputs) {
        if (output.row >= 0) output.drawn = draw(*output.sequence, llama_get_logits_ith(context(), output.row));
    }
    return true;
}

Drawn Evaluator::draw(const Sequence & sequence, const float * logits) {
    const Request & request = *sequence.request;
    const auto copy = [&] { return std::make_shared<std::vector<float>>(logits, logits + n_vocab_); };
    if (request.params.max_tokens == 0) {
        const auto kept = sequence.next_logits ? sequence.next_logits : copy();
        return {{}, kept, kept};
    }
    const bool keeps = keeps_prompt_ends_ && request.result.token_ids.empty() && !sequence.next_logits;
    return {sampler_.sample(logits, n_vocab_, request.params, request.result.token_ids.size()), nullptr,
        keeps ? copy() : nullptr};
}

}  // namespace cria
