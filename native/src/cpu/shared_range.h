// Divides the rows or columns of a product among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cria {

// The begin of part `at` of `parts` equal parts of [0, total), which is the end of the part before; a multiple of
// `unit`.
inline int64_t part_begin(int64_t total, int64_t unit, int64_t at, int64_t parts) {
    return std::min(total, (total + unit - 1) / unit * at / parts * unit);
}

// Hands out a product's columns to threads, large pieces first: a core that is slowed down, for example by another
// process, takes fewer of them, and the others do not wait for it.
class SharedRange {
   public:
    // [0, count) in multiples of `unit`.
    SharedRange(int64_t count, int64_t unit) : count_(count), unit_(unit) {}

    // The next piece, for any of `threads`; false when nothing is left.
    bool take(int threads, int64_t & begin, int64_t & end) {
        begin = next_.load(std::memory_order_relaxed);
        do {
            if (begin >= count_) return false;
            const int64_t units = (count_ - begin + unit_ - 1) / unit_,
                          share = (units + 2 * threads - 1) / (2 * threads);
            end = std::min(count_, begin + share * unit_);
        } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
        return true;
    }

   private:
    const int64_t count_, unit_;
    std::atomic<int64_t> next_{0};
};

}  // namespace cria
