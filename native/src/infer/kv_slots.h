// The KV cache as slots: one stream of the llama_context each, holding the evaluated tokens of one sequence.
// A slot whose sequence is gone keeps its tokens until the space is needed, so that a later prompt with the same
// beginning finds them. A radix tree over all slots finds the longest shared prefix.
// Not thread-safe: only the scheduler thread uses it, with the model's compute mutex held around changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cria/scheduler.h"
#include "infer/kv_history.h"
#include "infer/kv_rows.h"
#include "infer/prefill_cuts.h"
#include "infer/prefix_tree.h"
#include "cria/token_places.h"

struct llama_context;
struct llama_memory_context_i;

namespace cria {

// The KV that a prompt may take from other sequences.
enum class PrefixSharing {
    family,  // only the tokens that it was forked with
    chunks,  // whole prefill chunks from the beginning: a fresh evaluation computes exactly the same batches
    tokens,  // any prefix: each row's bits are the same in every batch, or determinism was not requested
};

// Logits after the `length`-th token of a slot.
struct PrefixLogits {
    size_t length = 0;
    std::shared_ptr<std::vector<float>> values;
};

struct KvSlot {
    SequenceId owner = 0;  // 0: free
    std::vector<int32_t> tokens;  // the stream's content, in order
    int32_t next_position = 0;  // position of the token after them
    uint64_t last_use = 0;
    SequenceId family = 0;  // family of the sequence that they were evaluated for
    KvKey key = kLivePolicy;  // the version or history that evaluated them
    PrefixLogits prompt_end;  // of the last prompt: a repeat of the same prompt needs no evaluation
};

// A slot's KV outside the cache.
struct SavedKv {
    std::vector<uint8_t> state;
    size_t tokens = 0;  // number of tokens that it covers
    size_t shareable = 0;  // the first so many of them may be shared
};

class KvSlots {
   public:
    // @param rewinds whether a slot can remove its last tokens and keep the others
    KvSlots(llama_context * context, int count, PrefixSharing sharing, const PrefillCuts & cuts,
        const TokenPlaces & places, bool rewinds);
    int count() const { return int(slots_.size()); }
    KvSlot & operator[](int slot) { return slots_[size_t(slot)]; }

    // The longest prefix of `tokens` that slots of this key hold and that a prompt may take.
    PrefixMatch find_prefix(const std::vector<int32_t> & tokens, KvKey key) const;
    // Length of the longest prefix that running requests have promised to evaluate.
    size_t find_promised(const std::vector<int32_t> & tokens, KvKey key) const;
    // The slots of a family that share the longest prefix with the first `most` of `tokens`. Where slots do not rewind,
    // only slots that hold nothing else.
    PrefixMatch find_in_family(const std::vector<int32_t> & tokens, size_t most, SequenceId family) const;
    // A free slot: the lowest empty one (so that active slots are adjacent), else the least recently used one; -1 when
    // none.
    int find_free() const;
    // This version or history evaluates the slot's tokens from now on; the slot loses tokens of another one.
    void set_key(int slot, KvKey key);
    // The slot's first `length` tokens become the beginning of a history of their own.
    void begin_history(int slot, KvKey key, size_t length);

    // Announces that the slot's request will evaluate the rest of these tokens. Call `unpromise` when it has, or will
    // not.
    void promise(int slot, const std::vector<int32_t> & tokens);
    void unpromise(int slot) { trees_of(slot).promised.truncate(slot, 0); }
    // Adds tokens that were evaluated in one piece. `whole`: this piece is a whole chunk, whatever tokens come after
    // it.
    void append(int slot, const int32_t * tokens, size_t count, bool whole);
    // Keeps the first `length` tokens, or fewer where the slot cannot be cut there (`PrefillCuts::last_cut`): none
    // where slots do not rewind and hold more.
    void trim(int slot, size_t length);
    // Removes the cells of a failed evaluation; all cells where slots do not rewind. If an image was evaluated in part,
    // llama.cpp may remove its earlier cells as well, because they have the same time: they are evaluated again.
    void remove_failed(int slot);
    // Shorter prefixes are evaluated again, not copied.
    size_t least_copied() const { return rows_.can_copy() ? 1 : 8; }
    // Copies the first `length` tokens of a slot into another.
    void copy(int from, int to, size_t length);
    // Swaps two slots, at about the cost of copying the longer one; only if `can_swap`.
    // (With rows and columns of images, cells of equal index have other positions, and llama.cpp has no way to swap
    // them.)
    bool can_swap() const { return rows_.can_copy() && !places_.has_grids(); }
    void exchange(int a, int b);
    void clear_all();
    // Clears the slots of one version.
    void clear(PolicyVersion version);
    SavedKv save(int slot) const;
    // Returns false when the state could not be restored; the slot is then empty.
    bool restore(int slot, const SavedKv & saved, const std::vector<int32_t> & tokens);

   private:
    // The tokens of one key's slots; slots of other keys have none in it.
    struct Trees {
        explicit Trees(int slots) : resident(slots), promised(slots) {}

        PrefixTree
            resident;  // the shareable leading tokens of each slot: those with the same bits as a fresh evaluation
        PrefixTree promised;
    };
    Trees & trees_of(int slot);
    // The slot has no tokens in the trees of its key.
    void change_key(int slot, KvKey key);
    const Trees * find_trees(KvKey key) const;

    // Removes a slot's cells from a position on. Returns false, without removing any, if llama.cpp cannot.
    [[nodiscard]] bool remove_cells(int slot, int32_t from);
    void remove_all_cells(int slot);
    // Copies llama.cpp's record of used cells from slot `from` to slot `to`.
    std::unique_ptr<llama_memory_context_i> copy_cells(int from, int to);

    llama_context * context_;
    PrefixSharing sharing_;
    PrefillCuts cuts_;
    TokenPlaces places_;
    bool rewinds_;
    std::vector<KvSlot> slots_;
    KvRows rows_;
    std::map<KvKey, Trees> trees_;
};

}  // namespace cria
