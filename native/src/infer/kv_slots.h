// The KV cache as slots: one stream of the llama_context each, holding the evaluated tokens of one sequence.
// A slot whose sequence is gone keeps its tokens, so that a later sequence with the same prefix finds them.
// Not thread-safe: the scheduler thread alone uses it, with the model's compute mutex held around changes.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/scheduler.h"

struct llama_context;

namespace cria {

struct KvSlot {
    SequenceId owner = 0;  // 0: free
    std::vector<int32_t> tokens;  // what the stream holds, in order
    uint64_t last_use = 0;
    SequenceId family = 0;  // of the sequence that it was evaluated for
};

class KvSlots {
   public:
    KvSlots(llama_context * context, int count) : context_(context), slots_(size_t(count)) {}
    int count() const { return int(slots_.size()); }
    KvSlot & operator[](int slot) { return slots_[size_t(slot)]; }

    // The slot whose tokens share the longest prefix with the first `limit` of `tokens`; -1 when none shares any.
    // A family other than 0 restricts the search to its slots.
    int find_longest_prefix(const std::vector<int32_t> & tokens, size_t limit, SequenceId family, size_t & length) const;
    // A free slot: the lowest empty one (active slots then lie together), else the one unused longest; -1 when none.
    int find_free() const;
    // Keeps the first `length` tokens of a slot.
    void trim(int slot, size_t length);
    // Copies a whole stream, then trims the copy.
    void copy(int from, int to, size_t length);
    void clear_all();
    std::vector<uint8_t> save(int slot) const;
    // False when the state could not be restored; the slot is then empty.
    bool restore(int slot, const std::vector<uint8_t> & state, const std::vector<int32_t> & tokens);

   private:
    llama_context * context_;
    std::vector<KvSlot> slots_;
};

}  // namespace cria
