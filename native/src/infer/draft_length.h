// Chooses how many drafted tokens a decode step evaluates behind each sequence's last one: those that give the most
// tokens per second, by the time that evaluations of as many rows took. Where a row more costs as much as a token, or
// where drafts are rarely right, that is none. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "infer/drafter.h"

namespace cria {

// Drafted tokens of each sequence in one step, at most.
constexpr int kMostDrafted = 7;
// Slots of a step that drafts. Products of so many rows take as long for each row more as for a token.
constexpr int kMostSlots = 32;
// Tokens of each sequence at most, in a step of so many slots.
constexpr int most_drafted(int slots) { return slots <= kMostSlots ? kMostDrafted : 0; }
// Each slot of a step has as many rows as the longest draft needs. Those that hold nothing cost as much as so many rows
// that do: products leave them out (own_products.h), norms and the copy of logits do not.
constexpr double kCostOfPadding = 0.15;
inline int count_cost(int used, int rows) { return used + int(kCostOfPadding * (rows - used)); }

class DraftLength {
   public:
    // The lengths for a step whose sequences have these drafts, at most `most`. With k as the longest of them it has
    // slots x (k + 1) rows, some of which are padding.
    std::vector<int> choose(const std::vector<std::vector<DraftToken>> & drafts, int slots, int most) const;
    // The time that a decode step took, in seconds, with so many rows (count_cost()).
    void note(int rows, double seconds);

   private:
    struct Time {
        double seconds = 0;  // moving average
        double count = 0;  // of evaluations; old ones count less
        int64_t step = 0;  // the last one
    };
    // As short as it may well be: what was measured seldom or long ago is tried again.
    double expect(int rows) const;

    std::map<int, Time> times_;  // by number of rows, as round_rows() gives it
    int64_t steps_ = 0;
};

}  // namespace cria
