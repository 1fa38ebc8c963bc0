#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "infer/row_plan.h"
#include "llama.h"
#include "scheduler/scheduler_impl.h"

namespace cria {

namespace {

std::vector<int> lengths_of(const std::vector<std::vector<DraftToken>> & drafts) {
    std::vector<int> lengths;
    lengths.reserve(drafts.size());
    for (const auto & draft : drafts) lengths.push_back(int(draft.size()));
    return lengths;
}

}  // namespace

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
    const auto started = Clock::now();
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
    const int slot_count = int(decoding.size() + padding.size());
    const bool always = options.drafting == Drafting::always;
    const int most = always ? kMostDrafted : most_drafted(slot_count);
    int room = rules.drafts ? std::min(most, batch.room() / slot_count - 1) : 0;
    const int cells = int(llama_n_ctx_seq(evaluator.context()));
    const auto leave_cells = [&](int slot) { room = std::min(room, cells - 1 - slots[slot].next_position); };
    for (const auto & sequence : decoding) leave_cells(sequence->slot);
    for (const int slot : padding) leave_cells(slot);
    const std::vector<std::vector<DraftToken>> drafts = list_drafts(decoding, room);
    const std::vector<int> lengths = always ? lengths_of(drafts) : draft_length.choose(drafts, slot_count, room);
    // Each slot has as many rows: those of padding are left out by our products.
    const int length = *std::max_element(lengths.begin(), lengths.end());
    std::vector<Output> outputs;
    std::vector<VersionRows> rows;
    StreamRows used{length + 1, {}};
    int first = slots.count(), last = -1;
    const auto add_rows = [&](int32_t token, const std::vector<int32_t> & draft, int slot, PolicyVersion version) {
        if (rows.empty() || rows.back().version != version) rows.push_back({version, 0});
        rows.back().count += 1 + length;
        first = std::min(first, slot);
        last = slot;
        const int position = slots[slot].next_position, row = batch.add(token, position, slot, true);
        for (int i = 0; i < length; i++)
            batch.add(i < int(draft.size()) ? draft[size_t(i)] : 0, position + 1 + i, slot, true);
        return row;
    };
    size_t p = 0;
    const auto pad_until = [&](int slot, PolicyVersion version) {
        for (; p < padding.size() && padding[p] < slot; p++) {
            add_rows(0, {}, padding[p], version);
            used.used.push_back(0);
        }
    };
    int drafted = 0;
    for (size_t i = 0; i < decoding.size(); i++) {
        const auto & sequence = decoding[i];
        pad_until(sequence->slot, sequence->version);
        std::vector<int32_t> draft;
        draft.reserve(size_t(lengths[i]));
        for (int d = 0; d < lengths[i]; d++) draft.push_back(drafts[i][size_t(d)].token);
        drafted += lengths[i];
        const int row = add_rows(sequence->tokens.back(), draft, sequence->slot, sequence->version);
        used.used.push_back(1 + lengths[i]);
        outputs.push_back({sequence, row, std::move(draft), {}});
    }
    pad_until(slots.count(), decoding.back()->version);
    const bool is_one_batch = (last - first + 1) * (length + 1) == batch.size();
    if (rows.size() > 1 && !is_one_batch) return false;
    std::optional<UsedRows> used_rows;
    if (is_one_batch && evaluator.products()) used_rows.emplace(*evaluator.products(), std::move(used));
    const bool ok = evaluate(outputs, rows);
    used_rows.reset();
    for (const int slot : padding) slots.trim(slot, slots[slot].tokens.size());
    totals.padding_tokens += uint64_t(batch.size() - int(outputs.size()) - drafted);
    totals.draft_tokens += uint64_t(drafted);
    for (size_t i = 0; i < outputs.size(); i++) {
        const auto & [sequence, row, draft, drawn] = outputs[i];
        if (!ok) {
            requests.fail_evaluation(sequence, std::to_string(outputs.size()) + " sequences");
            continue;
        }
        for (size_t d = 0; d < std::min(drafts[i].size(), drawn.size()); d++) {
            if (!drawn[d].error) drafter.judge(drafts[i][d], drawn[d].token.token);
        }
        accept(outputs[i], length);
    }
    // Drawing from rows and removing them cost as much as evaluating them where a model is small.
    if (rules.drafts && ok && slot_count <= kMostSlots) {
        draft_length.note(count_cost(int(outputs.size()) + drafted, batch.size()),
            std::chrono::duration<double>(Clock::now() - started).count());
    }
    return true;
}

std::vector<std::vector<DraftToken>> Scheduler::Impl::list_drafts(
    const std::vector<std::shared_ptr<Sequence>> & sequences, int room) const {
    std::vector<std::vector<DraftToken>> drafts;
    for (const auto & sequence : sequences) {
        const Request & request = *sequence->request;
        // A row behind the last token that the request may sample would be for nothing.
        const size_t sampled = request.result.token_ids.size() + 1, total = sequence->tokens.size() + 1;
        const int left = std::min(request.params.max_tokens - int(sampled), options.context_size - int(total));
        // The tokens that a grammar allows after a token are known only when that token is, so none are drafted.
        const int most = request.grammar ? 0 : std::min(room, left);
        drafts.push_back(drafter.propose(sequence->tokens, most, request.params.stop_tokens));
    }
    return drafts;
}

void Scheduler::Impl::accept(const Output & output, int length) {
    KvSlots & slots = store.slots();
    const auto & [sequence, row, draft, drawn] = output;
    const int slot = sequence->slot;
    size_t kept = 0;
    for (; kept < drawn.size() && sequence->request; kept++) {
        slots.append(slot, &sequence->tokens.back(), 1, false);
        // The token before sampling began belongs to the prompt; later ones were sampled.
        if (sequence->request->result.token_ids.empty()) {
            drafter.observe(sequence->tokens, sequence->tokens.size() - 1, sequence->tokens.size());
            if (drawn[0].prompt_end) slots[slot].prompt_end = {sequence->tokens.size(), drawn[0].prompt_end};
            sequence->request->result.stats.prefill_tokens++;
            totals.prefill_tokens++;
        }
        requests.accept(sequence, drawn[kept]);
    }
    totals.accepted_draft_tokens += kept - 1;
    // The rows of tokens that were not drawn, or behind the request's end.
    if (int(kept) <= length) slots.trim(slot, slots[slot].tokens.size());
}

}  // namespace cria
