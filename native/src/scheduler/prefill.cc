#include <algorithm>

#include "scheduler/scheduler_impl.h"

namespace cria {

namespace {

// Prompt tokens evaluated between two decode steps, over all sequences.
constexpr int kPrefillPerStep = 4096;

struct Chunk {
    std::shared_ptr<Sequence> sequence;
    int length;
};

}  // namespace

void Scheduler::Impl::prefill() {
    std::vector<Chunk> chunks;
    int budget = kPrefillPerStep;
    for (const auto & sequence : requests.running()) {
        const int pending = int(sequence->tokens.size() - store.slot_of(*sequence).tokens.size());
        const bool needs = pending > 1 || (pending == 1 && sequence->request->params.max_tokens == 0);
        if (!needs || budget <= 0) continue;
        const int length = std::min(pending, options.prefill_chunk);
        budget -= length;
        chunks.push_back({sequence, length});
    }
    std::sort(chunks.begin(), chunks.end(), [](const Chunk & a, const Chunk & b) {
        return a.length != b.length ? a.length < b.length : a.sequence->slot < b.sequence->slot;
    });
    DecodeBatch & batch = evaluator.batch();
    for (size_t begin = 0; begin < chunks.size() && !stopping;) {
        batch.clear();
        std::vector<Output> outputs;  // sequence, index of its last token
        // Padding rows after a short chunk make it use the kernels of long ones; no earlier row sees them.
        const int length = chunks[begin].length, rows = rules.padded(length);
        size_t end = begin;
        for (; end < chunks.size() && chunks[end].length == length && batch.room() >= rows &&
               (end == begin || rules.groups_prefill);
            end++) {
            const auto & sequence = chunks[end].sequence;
            const size_t at = store.slot_of(*sequence).tokens.size();
            const bool last = at + size_t(length) == sequence->tokens.size();
            const int first = batch.size();
            // As many output rows, for the same reason: the LM head and the last feed-forward see output rows only.
            for (int i = 0; i < rows; i++) {
                batch.add(i < length ? sequence->tokens[at + size_t(i)] : 0, int(at) + i, sequence->slot,
                    last && i >= std::max(0, length - rules.min_rows) && i < std::max(length, rules.min_rows));
            }
            outputs.push_back({sequence, last ? first + length - 1 : -1});
        }
        const bool ok = evaluate(outputs);
        if (rows > length) totals.padding_tokens += size_t(rows - length) * outputs.size();
        for (auto & [sequence, row, drawn] : outputs) {
            if (!ok) {
                requests.fail_evaluation(sequence, std::to_string(length) + " prompt tokens");
                continue;
            }
            KvSlot & slot = store.slot_of(*sequence);
            store.slots().append(sequence->slot, sequence->tokens.data() + slot.tokens.size(), size_t(length));
            if (rows > length) store.slots().trim(sequence->slot, slot.tokens.size());
            if (drawn.prompt_end) slot.prompt_end = {slot.tokens.size(), drawn.prompt_end};
            sequence->request->result.stats.prefill_tokens += length;
            totals.prefill_tokens += uint64_t(length);
            if (row >= 0) requests.accept(sequence, drawn);
        }
        begin = end;
    }
}

}  // namespace cria
