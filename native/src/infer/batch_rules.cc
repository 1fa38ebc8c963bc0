#include "infer/batch_rules.h"

#include "infer/own_products.h"
#include "llama-model.h"

namespace cria {

namespace {

// Whether ggml multiplies weights by a panel kernel from eight rows on.
bool has_panel_products(const llama_model * model) {
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        if (OwnProducts::cover(tensor)) continue;
        switch (tensor->type) {
            case GGML_TYPE_F32:
            case GGML_TYPE_F16:
            case GGML_TYPE_BF16:
            case GGML_TYPE_Q8_0:
            case GGML_TYPE_Q4_0:
                break;
            default:
                return true;
        }
    }
    return false;
}

// Whether the model has layers with a recurrent state, which cannot return to an earlier one.
bool has_state(const Model & model) {
    return llama_model_is_recurrent(model.llama()) || llama_model_is_hybrid(model.llama());
}

// See PrefixSharing. Where rows depend on their batch (other devices, flash attention, experts that ggml multiplies,
// because each sees a part of the rows), a deterministic scheduler shares only chunks that a fresh evaluation would
// compute in the same batches.
PrefixSharing choose_sharing(const Model & model, const SchedulerOptions & options) {
    // A state cannot go back to a prefix. Sliding windows can: the evaluator's cache keeps the cells behind them.
    if (!options.prefix_reuse || has_state(model)) return PrefixSharing::family;
    if (!options.deterministic) return PrefixSharing::tokens;
    // Weights are multiplied by our kernels, or by ggml's with as many rows as its matrix kernels need: on ARM more
    // than we provide.
#if defined(__x86_64__)
    const bool equal_weights = model.llama()->hparams.n_expert == 0 || OwnProducts::cover(model.llama());
#else
    const bool equal_weights = OwnProducts::cover(model.llama());
#endif
    const bool equal_rows = model.on_cpu() && !options.flash_attention.value_or(false) && equal_weights;
    return equal_rows ? PrefixSharing::tokens : PrefixSharing::chunks;
}

BatchRules choose_rows(const Model & model, const SchedulerOptions & options, const TokenPlaces & places) {
    BatchRules rules;
    rules.sharing = choose_sharing(model, options);
    rules.cuts = {size_t(options.prefill_chunk), llama_vocab_n_tokens(model.vocab()), places.has_grids()};
    // A padding row is a token of some sequence, and would change that sequence's state.
    rules.rewinds = !has_state(model);
    if (!rules.rewinds) {
        rules.min_rows = 1;
        return rules;
    }
    if (!options.deterministic || (rules.sharing == PrefixSharing::tokens && OwnProducts::cover(model.llama()))) {
        rules.min_rows = 1;
    } else if (!model.on_cpu()) {
        // Decoding has always the same number of rows, and a chunk of a prompt a batch of its own.
        rules.min_rows = 1;
        rules.decode_rows = options.max_sequences;
        rules.groups_prefill = false;
    } else if (has_panel_products(model.llama())) {
        rules.min_rows = 8;
        rules.row_step = 4;  // repacked weights: leftover rows behind a multiple of four use another kernel
        rules.groups_prefill = false;
    }
    return rules;
}

}  // namespace

BatchRules choose_batch_rules(const Model & model, const SchedulerOptions & options, const TokenPlaces & places) {
    BatchRules rules = choose_rows(model, options, places);
    // A drafted token's row must have the bits that it would have by itself. Positions in grids follow from the token
    // before, which is then not known.
    rules.drafts = options.drafting != Drafting::never && model.on_cpu() && rules.rewinds &&
                   rules.sharing == PrefixSharing::tokens && rules.min_rows == 1 && rules.decode_rows == 1 &&
                   !places.has_grids();
    return rules;
}

}  // namespace cria
