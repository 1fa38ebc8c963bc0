#include "infer/row_plan.h"

#include <cstddef>

namespace cria {

namespace {

constexpr int kHoleShare = 8;
constexpr int kMaxHole = 12;

}  // namespace

std::vector<std::pair<int, int>> plan_swaps(const std::vector<bool> & active) {
    const int count = int(active.size());
    int total = 0, first = -1, last = -1;
    for (int slot = 0; slot < count; slot++) {
        if (!active[size_t(slot)]) continue;
        if (first < 0) first = slot;
        last = slot;
        total++;
    }
    std::vector<std::pair<int, int>> swaps;
    if (total == 0 || (last - first + 1 - total) * kHoleShare <= total) return swaps;
    // Finds the first window with the most active slots, among all windows as wide as their number.
    int inside = 0, most = 0, begin = 0;
    for (int slot = 0; slot < count; slot++) {
        inside += active[size_t(slot)] - (slot >= total && active[size_t(slot - total)]);
        if (slot >= total - 1 && inside > most) {
            most = inside;
            begin = slot - total + 1;
        }
    }
    int hole = begin;
    for (int slot = first; slot <= last; slot++) {
        if (!active[size_t(slot)] || (slot >= begin && slot < begin + total)) continue;
        while (active[size_t(hole)]) hole++;
        swaps.emplace_back(slot, hole++);
    }
    return swaps;
}

std::vector<int> plan_padding(const std::vector<bool> & active, int min_rows, int row_step) {
    std::vector<int> padding;
    const int count = int(active.size());
    for (int begin = 0; begin < count;) {
        if (!active[size_t(begin)]) {
            begin++;
            continue;
        }
        int end = begin + 1, hole = 0;  // the run is [begin, end)
        for (int i = end; i < count && hole <= kMaxHole; i++) {
            hole = active[size_t(i)] ? 0 : hole + 1;
            if (hole == 0) end = i + 1;
        }
        int first = begin;
        const auto short_of_rows = [&] { return end - first < min_rows || (end - first) % row_step != 0; };
        while (short_of_rows() && end < count && !active[size_t(end)]) end++;
        while (short_of_rows() && first > 0 && (padding.empty() || padding.back() != first - 1) &&
               !active[size_t(first - 1)])
            first--;
        for (int i = first; i < end; i++) {
            if (!active[size_t(i)]) padding.push_back(i);
        }
        begin = end;
    }
    return padding;
}

}  // namespace cria
