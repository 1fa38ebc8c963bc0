// Rules for batches that keep a row's results independent of its neighbours, and the KV of other sequences that prompts
// may then take.
#pragma once

#include <algorithm>

#include "cria/model.h"
#include "cria/scheduler.h"
#include "infer/kv_slots.h"
#include "infer/prefill_cuts.h"

namespace cria {

struct BatchRules {
    PrefixSharing sharing = PrefixSharing::family;
    int min_rows = 2;  // minimum rows of a batch, so that each row is computed by the same kernel
    int row_step = 1;  // rows come in multiples of this, for the same reason
    // Minimum rows of a batch that decodes, where it needs more: devices pick kernels by the number of rows
    int decode_rows = 1;
    bool rewinds = true;  // whether evaluated tokens can be removed again; padding requires it
    // Whether several tokens of a sequence may be evaluated to sample from each, and those removed that were not drawn
    bool drafts = false;
    PrefillCuts cuts{};
    bool groups_prefill = true;  // equal chunks in one batch: only where this cannot change the kernel

    int round_up(int rows) const { return (rows + row_step - 1) / row_step * row_step; }
    // Number of rows of a batch that must evaluate `rows` rows.
    int padded(int rows) const { return round_up(std::max(min_rows, rows)); }
};

BatchRules choose_batch_rules(const Model & model, const SchedulerOptions & options, const TokenPlaces & places);

}  // namespace cria
