// Chooses how many drafted tokens a decode step evaluates behind each sequence's last one: as many as give the most
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
// Slots of a step that drafts. From eight rows on a row more costs about as much as a token, and each of many sequences
// would get as many rows as the one that is easiest to predict: 16 together lost up to a fifth.
constexpr int kMostSlots = 4;
// Tokens of each sequence at most, in a step of so many slots.
constexpr int most_drafted(int slots) { return slots <= kMostSlots ? kMostDrafted : 0; }

class DraftLength {
   public:
    // The length for a step whose sequences have these drafts. With length k it has slots x (k + 1) rows, some of which
    // are padding. At most `most`.
    int choose(const std::vector<std::vector<DraftToken>> & drafts, int slots, int most) const;
    // The time that a decode step took, in seconds.
    void note(int rows, double seconds);

   private:
    struct Time {
        double seconds = 0;  // moving average
        double count = 0;  // of evaluations; old ones count less
        int64_t step = 0;  // the last one
    };
    // As short as it may well be: what was measured seldom or long ago is tried again.
    double expect(int rows) const;

    std::map<int, Time> times_;  // by number of rows
    int64_t steps_ = 0;
};

}  // namespace cria
