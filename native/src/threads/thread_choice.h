// Chooses the number of threads of each evaluation by the time that earlier ones took. ggml's threads spin where they
// wait for each other: beside other programs all of them wait for one that lost its core, and fewer threads are then
// several times as fast. No result depends on the number of threads. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cria {

class ThreadChoice {
   public:
    // At most `threads`, at least 1.
    explicit ThreadChoice(int threads);
    // The number of threads for the next evaluation of this kind, at most `most`, which the first one gets. Evaluations
    // of a kind take about as long as each other.
    int choose(uint64_t kind, int most);
    // The time that an evaluation of this kind is expected to take, in seconds; 0: none is known.
    double expect(uint64_t kind) const;
    // The time that the evaluation took for which choose() was called last; not called for one that was aborted.
    void note(double seconds);

   private:
    struct Arm {
        double seconds = 0;  // moving average; 0: not tried
    };
    struct Kind {
        std::vector<Arm> arms;  // by index of counts_
        size_t best = 0;
        double spent = 0, lost = 0;  // seconds of all evaluations, and of trials beyond the best number's
        int since_trial = 0;
        bool tries_more = false;  // the next trial is of the next larger number, not of the next smaller one
    };
    void pick_best(Kind & kind) const;
    bool may_try(const Kind & kind) const;

    std::vector<int> counts_;  // numbers of threads to choose from, ascending
    std::unordered_map<uint64_t, Kind> kinds_;
    Kind * kind_ = nullptr;  // of the evaluation that runs
    size_t arm_ = 0;
};

}  // namespace cria
