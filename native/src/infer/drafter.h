// Guesses the next tokens of a sequence from all texts that passed: a sequence's own, its siblings' in the same group,
// those of the last epoch, prompts and tools' answers. Prompt lookup decoding (Saxena 2023) and SuffixDecoding (Oliaro
// et al. 2024, arXiv:2411.04975) keep texts and search them. This keeps none: a table of fixed size, as processors'
// branch predictors (TAGE, Seznec and Michaud 2006), from the hash of the last tokens, in several lengths, to the token
// that mostly followed. Guesses only save time: nobody takes one that sampling does not draw.
// Not thread-safe: guarded by the scheduler's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cria {

// Numbers of last tokens that a guess is made from. The longest holds a question's own words.
constexpr std::array<size_t, 3> kDraftContexts = {3, 6, 32};

struct DraftToken {
    int32_t token = 0;
    int kind = -1;  // of the guess; -1: nothing is known
    double chance = 0;  // that sampling draws it, if it drew the draft's tokens before it
};

class Drafter {
   public:
    // @param n_vocab ids from there on are images' vectors, which no model samples; 0: learns and proposes nothing
    explicit Drafter(int32_t n_vocab);

    // Learns tokens[from .. end): what followed those before it.
    void observe(const std::vector<int32_t> & tokens, size_t from, size_t end);
    // At most `most` tokens that may follow, for as long as something is known and it is likely enough that all of them
    // are drawn. None is one of `stops`.
    std::vector<DraftToken> propose(
        const std::vector<int32_t> & tokens, int most, const std::vector<int32_t> & stops) const;
    // Learns how often such guesses are right.
    void judge(const DraftToken & proposed, int32_t drawn);

   private:
    // The token that followed a context. After one more wrong guess than right ones another token takes its place.
    struct Entry {
        uint32_t tag = 0;
        int32_t next = -1;  // -1: empty
        uint8_t hits = 0, misses = 0;
    };
    // Guesses are of a kind that were made from a context of the same length, with equal numbers of hits and misses,
    // where a shorter context's guess is the same, another one, or missing.
    struct Record {
        float right = 0, all = 0;
    };
    using Hashes = std::array<uint64_t, kDraftContexts.size()>;

    // Hashes the longest contexts of `tokens`, followed by `draft`; 0 where they are shorter.
    static Hashes hash(const std::vector<int32_t> & tokens, size_t count, const std::vector<DraftToken> & draft);
    void learn(uint64_t hash, int32_t next);
    DraftToken guess(const Hashes & hashes) const;
    double chance_of(int kind) const;

    int32_t n_vocab_;
    std::vector<Entry> entries_;
    std::vector<Record> records_;  // by kind
};

}  // namespace cria
