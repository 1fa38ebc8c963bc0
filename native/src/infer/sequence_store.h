// All sequences, and their slots of the KV cache.
// Guarded by the scheduler's mutex. Functions that change slots' contents also need the model's compute mutex.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "infer/kv_slots.h"
#include "infer/sequence.h"

namespace cria {

class SequenceStore {
   public:
    // Saves evicted KV up to `swap_bytes`; beyond that it is evaluated again. Counts its work in `totals`.
    SequenceStore(llama_context * context, int slots, PrefixSharing sharing, const PrefillCuts & cuts,
        const TokenPlaces & places, bool rewinds, size_t swap_bytes, SchedulerStats & totals);

    KvSlots & slots() { return slots_; }
    KvSlot & slot_of(const Sequence & sequence) { return slots_[sequence.slot]; }
    const std::unordered_map<SequenceId, std::shared_ptr<Sequence>> & all() const { return sequences_; }
    size_t swapped_bytes() const { return swapped_bytes_; }

    uint64_t take_id() { return next_id_++; }
    // Throws Error("unknown-version").
    std::shared_ptr<Sequence> create(PolicyVersion version = kLivePolicy);
    // Lets a kept version evaluate and sample the sequence from here on, with the KV that others evaluated. The last
    // token is evaluated by the new one. The sequence has no request. Throws Error("unknown-version", or "live-version"
    // if either one is the live policy, whose KV each optimizer step makes useless).
    void take_over(Sequence & sequence, PolicyVersion version);
    // Copies the tokens now; finds the KV through the shared prefix when the fork first needs it.
    std::shared_ptr<Sequence> fork(const Sequence & original);
    // Throws Error("unknown-sequence").
    std::shared_ptr<Sequence> find(SequenceId id) const;
    // Returns the sequence to its initial state, in a new family.
    void reset(Sequence & sequence);
    // Releases the sequence's slot, which keeps its tokens for later sequences with the same prefix.
    void release(Sequence & sequence);

    // Whether a running request is about to evaluate more of this prompt than any slot holds. A group's prompt is then
    // evaluated once, however many of its samples arrive together.
    bool awaits_prefix(const Sequence & sequence) const;
    // Gives a slot, and KV if there is some, to a sequence without one: a prefix in some slot, its own saved state, or
    // nothing. Returns false when all slots are busy.
    bool give_slot(Sequence & sequence);
    // Marks the slot as just used.
    void touch(int slot) { slots_[slot].last_use = ++clock_; }
    void swap_slots(int a, int b);
    // All KV and logits are stale.
    void clear();
    // The weights of a version changed: what it has evaluated is stale.
    void clear(PolicyVersion version);
    // Sequences may be created with the version.
    void add_version(PolicyVersion version) { versions_.insert(version); }
    // Drops its KV. Throws Error("unknown-version", or "version-in-use" while a sequence has it, or KV
    // of it).
    void forget_version(PolicyVersion version);
    // No longer; what it has evaluated is gone. Throws Error("unknown-version", or "version-in-use" while a sequence
    // has it).
    void remove_version(PolicyVersion version);

   private:
    void check_version(PolicyVersion version) const;
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
    std::set<PolicyVersion> versions_{kLivePolicy};
};

}  // namespace cria
