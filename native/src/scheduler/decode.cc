#include <algorithm>
#include <map>

#include "infer/row_plan.h"
#include "scheduler/scheduler_impl.h"

namespace cria {

void Scheduler::Impl::decode() {
    // Older versions first: training waits for their conversations.
    std::map<PolicyVersion, std::vector<std::shared_ptr<Sequence>>> decoding;
    for (const auto & sequence : requests.running()) {
        if (sequence->tokens.size() - store.slot_of(*sequence).tokens.size() != 1) continue;
        if (model->vectors().is_vector(sequence->tokens.back())) continue;  // prefill() evaluates it
        decoding[sequence->version].push_back(sequence);
    }
    for (auto & [version, sequences] : decoding) {
        if (!stopping) decode(std::move(sequences), version);
    }
}

void Scheduler::Impl::decode(std::vector<std::shared_ptr<Sequence>> decoding, PolicyVersion version) {
    KvSlots & slots = store.slots();
    std::vector<bool> active(size_t(slots.count()));
    for (const auto & sequence : decoding) active[size_t(sequence->slot)] = true;
    if (slots.can_swap()) {
        for (const auto & [from, to] : plan_swaps(active)) {
            store.swap_slots(from, to);
            active[size_t(from)] = false;
            active[size_t(to)] = true;
        }
    }
    std::sort(decoding.begin(), decoding.end(), [](const auto & a, const auto & b) { return a->slot < b->slot; });
    const int least = std::max(rules.min_rows, rules.decode_rows);
    const std::vector<int> padding = rules.rewinds ? plan_padding(active, least, rules.row_step) : std::vector<int>();
    DecodeBatch & batch = evaluator.start_batch();
    std::vector<Output> outputs;
    size_t p = 0;
    const auto pad_until = [&](int slot) {
        for (; p < padding.size() && padding[p] < slot; p++)
            batch.add(0, slots[padding[p]].next_position, padding[p], true);
    };
    for (const auto & sequence : decoding) {
        pad_until(sequence->slot);
        const int position = store.slot_of(*sequence).next_position;
        outputs.push_back({sequence, batch.add(sequence->tokens.back(), position, sequence->slot, true)});
    }
    pad_until(slots.count());
    const bool ok = evaluate(outputs, version);
    if (!padding.empty()) {
        for (const int slot : padding) slots.trim(slot, slots[slot].tokens.size());
        totals.padding_tokens += padding.size();
    }
    for (auto & [sequence, row, drawn] : outputs) {
        if (!ok) {
            requests.fail_evaluation(sequence, std::to_string(outputs.size()) + " sequences");
            continue;
        }
        slots.append(sequence->slot, &sequence->tokens.back(), 1, false);
        // The token before sampling began belongs to the prompt; later ones were sampled.
        if (sequence->request->result.token_ids.empty()) {
            if (drawn.prompt_end) store.slot_of(*sequence).prompt_end = {sequence->tokens.size(), drawn.prompt_end};
            sequence->request->result.stats.prefill_tokens++;
            totals.prefill_tokens++;
        }
        requests.accept(sequence, drawn);
    }
}

}  // namespace cria
