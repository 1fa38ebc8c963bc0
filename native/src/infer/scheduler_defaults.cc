#include "cria/scheduler_defaults.h"

#include <algorithm>

#include "llama-model.h"

namespace cria {

int default_context_size(int training_context) {
    constexpr int kMost = 4096;
    return training_context > 0 ? std::min(training_context, kMost) : kMost;
}

bool choose_flash_attention(bool on_cpu, bool trainable, const std::string & kv_type, int head_size) {
    if (kv_type == "q8_0") return true;
    constexpr int kSizes[] = {64, 80, 96, 112, 128, 256};
    const bool has_kernel = std::find(std::begin(kSizes), std::end(kSizes), head_size) != std::end(kSizes);
    return !on_cpu && !trainable && kv_type == "f16" && has_kernel;
}

SchedulerOptions fill_defaults(const Model & model, SchedulerOptions options) {
    if (options.context_size == 0) options.context_size = default_context_size(llama_model_n_ctx_train(model.llama()));
    if (!options.flash_attention) {
        const bool trainable = model.options().trainable != Trainable::none;
        options.flash_attention = choose_flash_attention(
            model.on_cpu(), trainable, options.kv_type, int(model.llama()->hparams.n_embd_head_k()));
    }
    return options;
}

}  // namespace cria
