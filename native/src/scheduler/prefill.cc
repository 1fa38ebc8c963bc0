#include <algorithm>
#include <tuple>

#include "scheduler/scheduler_impl.h"

namespace cria {

namespace {

// Most prompt tokens between two decode steps, over all sequences.
constexpr int kPrefillPerStep = 4096;

struct Chunk {
    std::shared_ptr<Sequence> sequence;
    PolicyVersion version;
    int length;
    bool vectors;
};

}  // namespace

void Scheduler::Impl::prefill() {
    std::vector<Chunk> chunks;
    int budget = kPrefillPerStep;
    for (const auto & sequence : requests.running()) {
        const size_t at = store.slot_of(*sequence).tokens.size(), pending = sequence->tokens.size() - at;
        if (pending == 0 || budget <= 0) continue;
        const bool vectors = model->vectors().is_vector(sequence->tokens[at]);
        const bool needs = pending > 1 || vectors || sequence->request->params.max_tokens == 0;
        if (!needs) continue;
        const KvHistory::Part part = sequence->part_at(at);
        const int length = int(std::min(rules.cuts.end_after(sequence->tokens, at), part.end) - at);
        budget -= length;
        chunks.push_back({sequence, part.version, length, vectors});
    }
    std::sort(chunks.begin(), chunks.end(), [](const Chunk & a, const Chunk & b) {
        return std::make_tuple(a.version, a.vectors, a.length, a.sequence->slot) <
               std::make_tuple(b.version, b.vectors, b.length, b.sequence->slot);
    });
    for (size_t begin = 0; begin < chunks.size() && !stopping;) {
        const bool vectors = chunks[begin].vectors;
        const PolicyVersion version = chunks[begin].version;
        DecodeBatch & batch = evaluator.start_batch(vectors);
        std::vector<Output> outputs;  // sequence, index of its last token
        // Padding rows after a short chunk make it use the kernels of long ones; no earlier row sees them.
        const int length = chunks[begin].length, rows = rules.padded(length);
        size_t end = begin;
        for (; end < chunks.size() && chunks[end].length == length && chunks[end].vectors == vectors &&
               chunks[end].version == version && batch.room() >= rows && (end == begin || rules.groups_prefill);
            end++) {
            const auto & sequence = chunks[end].sequence;
            const KvSlot & slot = store.slot_of(*sequence);
            const size_t at = slot.tokens.size();
            const bool last = at + size_t(length) == sequence->tokens.size();
            const int first = batch.size();
            int32_t before = at > 0 ? slot.tokens.back() : -1, next = slot.next_position;
            // As many output rows, for the same reason: the LM head and the last feed-forward only see output rows.
            for (int i = 0; i < rows; i++) {
                const bool wants_logits =
                    last && i >= std::max(0, length - rules.min_rows) && i < std::max(length, rules.min_rows);
                const int32_t token = i < length ? sequence->tokens[at + size_t(i)] : 0;
                const TokenPlace place = places.advance(before, token, next);
                before = token;
                if (vectors) batch.add_vector(place, sequence->slot, wants_logits);
                else batch.add(token, place.time, sequence->slot, wants_logits);
            }
            if (vectors) model->vectors().read(sequence->tokens.data() + at, size_t(length), batch.vector(first));
            outputs.push_back({sequence, last ? first + length - 1 : -1, {}, {}});
        }
        const bool ok = evaluate(outputs, {{version, batch.size()}});
        if (rows > length) totals.padding_tokens += size_t(rows - length) * outputs.size();
        for (const auto & [sequence, row, draft, drawn] : outputs) {
            if (!ok) {
                requests.fail_evaluation(sequence, std::to_string(length) + " prompt tokens");
                continue;
            }
            KvSlot & slot = store.slot_of(*sequence);
            const size_t at = slot.tokens.size();
            const bool whole = rules.cuts.is_whole(sequence->tokens, at, at + size_t(length));
            store.slots().append(sequence->slot, sequence->tokens.data() + at, size_t(length), whole);
            if (rows > length) store.slots().trim(sequence->slot, slot.tokens.size());
            drafter.observe(sequence->tokens, at, at + size_t(length));
            if (row >= 0 && drawn.front().prompt_end) slot.prompt_end = {slot.tokens.size(), drawn.front().prompt_end};
            sequence->request->result.stats.prefill_tokens += length;
            totals.prefill_tokens += uint64_t(length);
            if (row >= 0) requests.accept(sequence, drawn.front());
        }
        begin = end;
    }
}

}  // namespace cria
