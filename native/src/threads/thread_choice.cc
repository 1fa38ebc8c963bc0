#include "threads/thread_choice.h"

#include <algorithm>

namespace cria {

namespace {

constexpr int kBetweenTrials = 8;  // at least as many evaluations lie between two trials
constexpr double kShareOfTrials = 0.01;  // of the time, at most, is lost by trials
constexpr double kGain = 0.9;  // more threads must take at most this share of the time
constexpr double kWeight = 0.25, kWeightOfTrial = 0.5;  // of an evaluation in the moving average
constexpr double kMostTimes = 4;  // an evaluation counts as at most as many times the average
constexpr double kKept = 0.999;  // of the sums, from one evaluation to the next, so that old times are forgotten
constexpr size_t kMostKinds = 256;

}  // namespace

ThreadChoice::ThreadChoice(int threads) {
    for (const int count : {1, threads / 2, threads - 1, threads})
        if (count >= 1 && (counts_.empty() || count > counts_.back())) counts_.push_back(count);
}

int ThreadChoice::choose(uint64_t kind, int most) {
    kind_ = nullptr;
    const auto end = std::upper_bound(counts_.begin() + 1, counts_.end(), most);
    const size_t usable = size_t(end - counts_.begin());
    if (usable == 1) return counts_.front();
    if (kinds_.size() >= kMostKinds && !kinds_.count(kind)) kinds_.clear();
    Kind & k = kinds_[kind];
    kind_ = &k;
    if (k.arms.empty()) {
        k.arms.resize(counts_.size());
        k.best = usable - 1;
    }
    arm_ = std::min(k.best, usable - 1);
    if (arm_ == k.best && may_try(k)) {
        const bool more = k.best == 0 || (k.tries_more && k.best + 1 < usable);
        arm_ = more ? k.best + 1 : k.best - 1;
        k.tries_more = !more;
        k.since_trial = 0;
    }
    return counts_[arm_];
}

double ThreadChoice::expect(uint64_t kind) const {
    const auto known = kinds_.find(kind);
    return known == kinds_.end() ? 0 : known->second.arms[known->second.best].seconds;
}

// A trial costs about as much as an evaluation more.
bool ThreadChoice::may_try(const Kind & k) const {
    return k.since_trial >= kBetweenTrials && k.lost + k.arms[k.best].seconds <= kShareOfTrials * k.spent;
}

void ThreadChoice::note(double seconds) {
    if (!kind_) return;
    Kind & k = *kind_;
    Arm & arm = k.arms[arm_];
    const double counted = arm.seconds > 0 ? std::min(seconds, kMostTimes * arm.seconds) : seconds;
    const double weight = arm.seconds == 0 ? 1 : arm_ == k.best ? kWeight : kWeightOfTrial;
    arm.seconds += weight * (counted - arm.seconds);
    k.spent = kKept * k.spent + seconds;
    k.lost = kKept * k.lost + (arm_ == k.best ? 0 : std::max(0.0, seconds - k.arms[k.best].seconds));
    k.since_trial++;
    pick_best(k);
}

// Fewer threads leave cores to others, so more must gain.
void ThreadChoice::pick_best(Kind & k) const {
    const auto cost = [&](size_t i) { return k.arms[i].seconds; };
    size_t best = k.best;
    for (size_t i = 0; i < k.arms.size(); i++) {
        if (cost(i) == 0 || i == best) continue;
        if (i < best ? kGain * cost(i) < cost(best) : cost(i) < kGain * cost(best)) best = i;
    }
    k.best = best;
}

}  // namespace cria
