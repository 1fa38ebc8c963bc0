// The KV cache as slots: one stream of the llama_context each, holding the evaluated tokens of one sequence.
// A slot whose sequence is gone keeps its tokens until the room is needed, so that a later prompt that begins with them
// finds them: a radix tree over all slots says who holds the longest prefix.
// Not thread-safe: the scheduler thread alone uses it, with the model's compute mutex held around changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cria/scheduler.h"
#include "infer/kv_rows.h"
#include "infer/prefill_cuts.h"
#include "infer/prefix_tree.h"
#include "cria/token_places.h"

struct llama_context;
struct llama_memory_context_i;

namespace cria {

// What a prompt may take from other sequences.
enum class PrefixSharing {
    family,  // nothing but what it was forked with
    chunks,  // whole prefill chunks from the beginning: a fresh evaluation computes exactly the same batches
    tokens,  // any prefix: each row's bits are the same in every batch, or nobody asked for that
};

// Logits after the `length`-th token of a slot.
struct PrefixLogits {
    size_t length = 0;
    std::shared_ptr<std::vector<float>> values;
};

struct KvSlot {
    SequenceId owner = 0;  // 0: free
    std::vector<int32_t> tokens;  // what the stream holds, in order
    int32_t next_position = 0;  // of the token behind them
    uint64_t last_use = 0;
    SequenceId family = 0;  // of the sequence that it was evaluated for
    PrefixLogits prompt_end;  // of the last prompt: whoever sends the same one has nothing to evaluate
};

// A slot's KV outside the cache.
struct SavedKv {
    std::vector<uint8_t> state;
    size_t tokens = 0;  // that it covers
    size_t shareable = 0;  // of them, from the first
};

class KvSlots {
   public:
    // @param rewinds whether a slot can lose its last tokens and keep the others
    KvSlots(llama_context * context, int count, PrefixSharing sharing, const PrefillCuts & cuts,
        const TokenPlaces & places, bool rewinds);
    int count() const { return int(slots_.size()); }
    KvSlot & operator[](int slot) { return slots_[size_t(slot)]; }

    // The longest prefix of `tokens` that slots hold and a prompt may take.
    PrefixMatch find_prefix(const std::vector<int32_t> & tokens) const;
    // How long it is among what running requests have promised to evaluate.
    size_t find_promised(const std::vector<int32_t> & tokens) const;
    // The slots of a family that share the longest prefix with the first `most` of `tokens`; those that hold nothing
    // else, where slots do not rewind.
    PrefixMatch find_in_family(const std::vector<int32_t> & tokens, size_t most, SequenceId family) const;
    // A free slot: the lowest empty one (active slots then lie together), else the one unused longest; -1 when none.
    int find_free() const;

    // The slot's request is about to evaluate the rest of these tokens; `unpromise` when it did, or will not.
    void promise(int slot, const std::vector<int32_t> & tokens);
    void unpromise(int slot) { promised_.truncate(slot, 0); }
    // Tokens that were evaluated in one piece; `whole`: as one chunk, whatever comes behind them.
    void append(int slot, const int32_t * tokens, size_t count, bool whole);
    // Keeps the first `length` tokens, or fewer where they cannot be cut there (`PrefillCuts::last_cut`): none where
    // slots do not rewind and hold more.
    void trim(int slot, size_t length);
    // Removes what an evaluation that failed has left; everything where slots do not rewind. Of an image in parts
    // llama.cpp may remove those before as well, for they stand at one time: they are evaluated again.
    void remove_failed(int slot);
    // Shorter prefixes are evaluated again rather than copied.
    size_t least_copied() const { return rows_.can_copy() ? 1 : 8; }
    // The first `length` tokens of a slot, into another.
    void copy(int from, int to, size_t length);
    // Two slots change places, which costs about a copy of the longer one; only where `can_swap`.
    // (With rows and columns of images cells of equal index stand elsewhere, and llama.cpp has no way to swap them.)
    bool can_swap() const { return rows_.can_copy() && !places_.has_grids(); }
    void swap(int a, int b);
    void clear_all();
    SavedKv save(int slot) const;
    // False when the state could not be restored; the slot is then empty.
    bool restore(int slot, const SavedKv & saved, const std::vector<int32_t> & tokens);

   private:
    // Removes a slot's cells from a position on. False: llama.cpp cannot, and has removed none.
    [[nodiscard]] bool remove_cells(int slot, int32_t from);
    void remove_all_cells(int slot);
    // llama.cpp's record of which cells of `from` are used, for `to`.
    std::unique_ptr<llama_memory_context_i> copy_cells(int from, int to);

    llama_context * context_;
    PrefixSharing sharing_;
    PrefillCuts cuts_;
    TokenPlaces places_;
    bool rewinds_;
    std::vector<KvSlot> slots_;
    KvRows rows_;
    PrefixTree
        resident_;  // what may be shared of each slot's tokens: the leading ones whose bits are a fresh evaluation's
    PrefixTree promised_;
};

}  // namespace cria
