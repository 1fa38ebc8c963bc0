// All sequences, and which of them has which slot of the KV cache.
// Guarded by the scheduler's mutex; what changes slots' contents also needs the model's compute mutex.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "infer/kv_slots.h"
#include "infer/sequence.h"

namespace cria {

class SequenceStore {
   public:
    // Evicted KV is saved up to `swap_bytes`, beyond that evaluated again. Counts what it does in `totals`.
    SequenceStore(llama_context * context, int slots, PrefixSharing sharing, const PrefillCuts & cuts,
        const TokenPlaces & places, bool rewinds, size_t swap_bytes, SchedulerStats & totals);

    KvSlots & slots() { return slots_; }
    KvSlot & slot_of(const Sequence & sequence) { return slots_[sequence.slot]; }
    const std::unordered_map<SequenceId, std::shared_ptr<Sequence>> & all() const { return sequences_; }
    size_t swapped_bytes() const { return swapped_bytes_; }

    uint64_t take_id() { return next_id_++; }
    std::shared_ptr<Sequence> create();
    // Tokens now; the KV is found through the shared prefix when the fork first needs it.
    std::shared_ptr<Sequence> fork(const Sequence & original);
    // Throws Error("unknown-sequence").
    std::shared_ptr<Sequence> find(SequenceId id) const;
    // As it was created, in a family of its own.
    void reset(Sequence & sequence);
    // The sequence is gone; its slot keeps its tokens for later ones with the same prefix.
    void release(Sequence & sequence);

    // Whether a running request is about to evaluate more of this prompt than lies in any slot: a group's prompt is
    // evaluated once, however many of its samples arrive at once.
    bool awaits_prefix(const Sequence & sequence) const;
    // Finds KV for a sequence that has none: a prefix in some slot, its own saved state, or nothing. False: all are
    // busy.
    bool give_slot(Sequence & sequence);
    // The slot was used just now.
    void touch(int slot) { slots_[slot].last_use = ++clock_; }
    void swap_slots(int a, int b);
    // Weights changed: all KV and logits are stale.
    void clear();

   private:
    int choose_free(const PrefixMatch & match);
    int evict();
    void drop_saved(Sequence & sequence);

    llama_context * context_;
    PrefixSharing sharing_;
    size_t swap_bytes_, swapped_bytes_ = 0;
    SchedulerStats & totals_;
    uint64_t next_id_ = 1, clock_ = 0;
    std::unordered_map<SequenceId, std::shared_ptr<Sequence>> sequences_;
    KvSlots slots_;
};

}  // namespace cria
