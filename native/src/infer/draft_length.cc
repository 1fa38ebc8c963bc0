#include "infer/draft_length.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cria {

namespace {

constexpr double kGain = 1.05;  // as many times the tokens per second, at least, for a draft
constexpr double kHope = 0.9;  // below it longer drafts are not tried either
constexpr double kWeight = 0.2;  // of an evaluation in the moving average, at least
constexpr double kMostTimes = 2;  // an evaluation counts as at most as many times what was expected
// Contexts grow and other programs come and go, which changes the times of all numbers of rows: those that are not
// measured follow the one that is, by half.
constexpr double kFollows = 0.1;
// A time that was measured once may be shorter by a seventh: a lower bound, as in bandits that change (Garivier and
// Moulines 2011). It is tried again, and forgotten when it was not for long.
constexpr double kDoubt = 0.2, kMostCount = 3, kLeastCount = 0.3;
constexpr double kKept = 0.998;  // of the counts, from one evaluation to the next
constexpr int64_t kFresh = 500;  // so many steps later a time without drafts is measured again
// Twice the rows that were measured are assumed to take so much more time: little, so that they are tried. More rows
// are not tried.
constexpr double kCostOfMore = 0.15;
constexpr int kMostTimesRows = 2;

}  // namespace

double DraftLength::expect(int rows) const {
    const auto shortest = [](const Time & time) { return time.seconds * (1 - kDoubt / std::sqrt(1 + time.count)); };
    const auto above = times_.lower_bound(rows);
    if (above != times_.end() && (above->first == rows || above == times_.begin())) return shortest(above->second);
    const auto below = std::prev(above);
    const double extra = double(rows - below->first), fewer = shortest(below->second);
    if (above == times_.end()) return fewer * (1 + kCostOfMore * extra / below->first);
    return fewer + std::max(0.0, shortest(above->second) - fewer) * extra / (above->first - below->first);
}

int DraftLength::choose(const std::vector<std::vector<DraftToken>> & drafts, int slots, int most) const {
    // Drafts are compared with a time that was measured not long ago.
    const auto measured = times_.find(slots);
    if (measured == times_.end() || steps_ - measured->second.step > kFresh) return 0;
    double tokens = double(drafts.size());
    const double plain_seconds = expect(slots), plain = tokens / plain_seconds;
    std::vector<double> chances(drafts.size(), 1.0);
    int best = 0;
    double best_speed = kGain * plain;
    const int most_rows = kMostTimesRows * times_.rbegin()->first;
    for (int length = 1; length <= most && slots * (length + 1) <= most_rows; length++) {
        double more = 0;
        for (size_t i = 0; i < drafts.size(); i++) {
            chances[i] *= int(drafts[i].size()) < length ? 0 : drafts[i][size_t(length) - 1].chance;
            more += chances[i];
        }
        if (more == 0) break;
        tokens += more;
        const double speed = tokens / std::max(plain_seconds, expect(slots * (length + 1)));
        if (speed < kHope * plain) break;
        if (speed <= best_speed) continue;
        best = length;
        best_speed = speed;
    }
    return best;
}

void DraftLength::note(int rows, double seconds) {
    const double expected = times_.empty() ? seconds : expect(rows);
    Time & time = times_[rows];
    const double known = time.count > 0 ? time.seconds : expected, counted = std::min(seconds, kMostTimes * known);
    const double change = time.count > 0 ? 1 + kFollows * (counted / known - 1) : 1;
    for (auto it = times_.begin(); it != times_.end();) {
        auto & [other, average] = *it;
        average.count *= kKept;
        if (other != rows) average.seconds *= change;
        it = other != rows && average.count < kLeastCount ? times_.erase(it) : std::next(it);
    }
    time.step = ++steps_;
    time.count = std::min(kMostCount, time.count + 1);
    time.seconds += std::max(kWeight, 1 / time.count) * (counted - time.seconds);
}

}  // namespace cria
