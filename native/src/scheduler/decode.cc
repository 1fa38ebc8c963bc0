#include <algorithm>
#include <map>

#include "infer/row_plan.h"
#include "scheduler/scheduler_impl.h"

namespace cria {

void Scheduler::Impl::decode() {
    std::vector<std::shared_ptr<Sequence>> all;
    // Older versions first: training waits for their conversations.
    std::map<PolicyVersion, std::vector<std::shared_ptr<Sequence>>> by_version;
    for (const auto & sequence : requests.running()) {
        if (sequence->tokens.size() - store.slot_of(*sequence).tokens.size() != 1) continue;
        if (model->vectors().is_vector(sequence->tokens.back())) continue;  // prefill() evaluates it
        all.push_back(sequence);
        by_version[sequence->version].push_back(sequence);
    }
    const bool mixes =
        by_version.size() > 1 && evaluator.products() && model->adapter() && OwnProducts::can_mix(versions.stand_ins());
    if (mixes && decode(std::move(all))) return;
    for (auto & [version, sequences] : by_version) {
        if (!stopping) decode(std::move(sequences));
    }
}

bool Scheduler::Impl::decode(std::vector<std::shared_ptr<Sequence>> decoding) {
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
    std::vector<VersionRows> rows;
    int first = slots.count(), last = -1;
    const auto add_row = [&](int32_t token, int slot, PolicyVersion version) {
        if (rows.empty() || rows.back().version != version) rows.push_back({version, 0});
        rows.back().count++;
        first = std::min(first, slot);
        last = slot;
        return batch.add(token, slots[slot].next_position, slot, true);
    };
    size_t p = 0;
    const auto pad_until = [&](int slot, PolicyVersion version) {
        for (; p < padding.size() && padding[p] < slot; p++) add_row(0, padding[p], version);
    };
    for (const auto & sequence : decoding) {
        pad_until(sequence->slot, sequence->version);
        outputs.push_back({sequence, add_row(sequence->tokens.back(), sequence->slot, sequence->version)});
    }
    pad_until(slots.count(), decoding.back()->version);
    const bool is_one_batch = last - first + 1 == batch.size();
    if (rows.size() > 1 && !is_one_batch) return false;
    const bool ok = evaluate(outputs, rows);
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
    return true;
}

}  // namespace cria
