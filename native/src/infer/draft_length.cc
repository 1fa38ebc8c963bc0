#include "infer/draft_length.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace cria {

namespace {

constexpr double kGain = 1.05;  // as many times the tokens per second, at least, for a draft
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

// Numbers of rows that differ by less than an eighth share their times.
int round_rows(int rows) {
    const int unit = std::max(1, (1 << std::ilogb(rows)) / 8);
    return (rows + unit - 1) / unit * unit;
}

// A drafted token of a sequence, and the chance that it and those before it are drawn.
struct Candidate {
    size_t sequence;
    double chance;
};

}  // namespace

double DraftLength::expect(int rows) const {
    rows = round_rows(rows);
    const auto shortest = [](const Time & time) { return time.seconds * (1 - kDoubt / std::sqrt(1 + time.count)); };
    const auto above = times_.lower_bound(rows);
    if (above != times_.end() && (above->first == rows || above == times_.begin())) return shortest(above->second);
    const auto below = std::prev(above);
    const double extra = double(rows - below->first), fewer = shortest(below->second);
    if (above == times_.end()) return fewer * (1 + kCostOfMore * extra / below->first);
    return fewer + std::max(0.0, shortest(above->second) - fewer) * extra / (above->first - below->first);
}

std::vector<int> DraftLength::choose(const std::vector<std::vector<DraftToken>> & drafts, int slots, int most) const {
    std::vector<int> lengths(drafts.size(), 0);
    // Drafts are compared with a time that was measured not long ago.
    const int least_rows = count_cost(int(drafts.size()), slots);
    const auto measured = times_.find(round_rows(least_rows));
    if (measured == times_.end() || steps_ - measured->second.step > kFresh) return lengths;
    const double plain_seconds = expect(least_rows), plain = double(drafts.size()) / plain_seconds;
    const int most_rows = kMostTimesRows * times_.rbegin()->first;
    // The likeliest drafted tokens up to some length: a token is never likelier than those before it.
    std::vector<Candidate> candidates, best;
    std::vector<double> chances(drafts.size(), 1.0);
    double best_speed = kGain * plain;
    for (int length = 1; length <= most; length++) {
        const size_t before = candidates.size();
        for (size_t i = 0; i < drafts.size(); i++) {
            if (int(drafts[i].size()) < length) continue;
            chances[i] *= drafts[i][size_t(length) - 1].chance;
            candidates.push_back({i, chances[i]});
        }
        if (candidates.size() == before) break;
        std::sort(candidates.begin(), candidates.end(), [](const Candidate & a, const Candidate & b) {
            return a.chance != b.chance ? a.chance > b.chance : a.sequence < b.sequence;
        });
        double tokens = double(drafts.size());
        for (size_t count = 1; count <= candidates.size(); count++) {
            tokens += candidates[count - 1].chance;
            const auto cost = [&](size_t drafted) {
                return count_cost(int(drafts.size() + drafted), slots * (length + 1));
            };
            const int rows = cost(count);
            if (rows > most_rows) break;
            // As many as take the same time, and measurably more than none.
            if (count < candidates.size() && round_rows(cost(count + 1)) == round_rows(rows)) continue;
            if (round_rows(rows) <= round_rows(least_rows)) continue;
            const double speed = tokens / std::max(plain_seconds, expect(rows));
            if (speed <= best_speed) continue;
            best.assign(candidates.begin(), candidates.begin() + std::ptrdiff_t(count));
            best_speed = speed;
        }
    }
    for (const Candidate & chosen : best) lengths[chosen.sequence]++;
    return lengths;
}

void DraftLength::note(int rows, double seconds) {
    rows = round_rows(rows);
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
