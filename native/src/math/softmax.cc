#include "math/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "math/row_kernel.h"

namespace cria {

RunningSums::Change RunningSums::absorb(float * tile, int count, float scale, bool with_squares) {
    const float old = max;
    max = std::max(old, row_kernel().largest(tile, count, scale));
    double factor = 1.0;
    if (max > old) {
        factor = std::isinf(old) ? 0.0 : std::exp(double(old) - double(max));
        weighted = sum > 0.0 ? factor * (weighted + (double(old) - double(max)) * sum) : 0.0;
        sum *= factor;
        squares *= factor * factor;
    }
    if (with_squares) squares += row_kernel().sum_exp(tile, count, 2.0f * scale, 2.0f * max);
    double tile_weighted = 0.0;
    const double tile_sum = row_kernel().replace_by_exp_times(tile, count, scale, max, tile_weighted);
    sum += tile_sum;
    weighted += tile_weighted;
    return {factor, tile_sum};
}

RunningSums merge_sums(const RunningSums (&shares)[kShares]) {
    RunningSums all;
    for (const RunningSums & s : shares) all.max = std::max(all.max, s.max);
    for (const RunningSums & s : shares) {
        if (s.sum == 0.0) continue;
        const double shift = double(s.max) - double(all.max), factor = std::exp(shift);
        all.sum += factor * s.sum;
        all.weighted += factor * (s.weighted + shift * s.sum);
        all.squares += factor * factor * s.squares;
    }
    return all;
}

RowStats describe_row(const RunningSums & sums) {
    const double log_sum = std::log(sums.sum);
    return {sums.max, log_sum, float(log_sum - sums.weighted / sums.sum)};
}

RowStats softmax_stats(const float * logits, int n, float scale, std::vector<TileSum> * tiles) {
    RunningSums shares[kShares];
    float tile[kTile];
    const int all = count_tiles(n);
    if (tiles) tiles->clear();
    for (int share = 0; share < kShares; share++) {
        RunningSums & sums = shares[share];
        for (int at = begin_tile(all, share); at < begin_tile(all, share + 1); at++) {
            const int count = std::min(kTile, n - at * kTile);
            std::memcpy(tile, logits + at * kTile, size_t(count) * sizeof(float));
            const double sum = sums.absorb(tile, count, scale, false).sum;
            if (tiles) tiles->push_back({sums.max, sum});
        }
    }
    return describe_row(merge_sums(shares));
}

float sum_squared_probabilities(const float * logits, int n, float scale, const RowStats & stats) {
    return float(row_kernel().sum_exp(logits, n, 2.0f * scale, 2.0f * stats.max) * std::exp(-2.0 * stats.log_sum));
}

void softmax_weights(const float * logits, int n, float scale, float max, float * weights) {
    row_kernel().exp_of(logits, n, scale, max, weights);
}

void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities) {
    row_kernel().exp_of(logits, n, scale, float(double(stats.max) + stats.log_sum), probabilities);
}

float softmax_in_place(float * x, int n, float scale, const float * sink) {
    float max = row_kernel().largest(x, n, scale);
    if (sink) max = std::max(max, *sink);
    float sum = row_kernel().replace_by_exp(x, n, scale, max);
    if (sink) sum += std::exp(*sink - max);
    row_kernel().scale_row(x, n, 1.0f / sum);
    return max + std::log(sum);
}

void softmax_again(float * x, int n, float scale, float log_sum) { row_kernel().exp_of(x, n, scale, log_sum, x); }

void softmax_backward(float * d, const float * p, int n, float scale, float delta) {
    row_kernel().backward(d, p, n, scale, delta);
}

void softmax_gradient(float * logits, int n, float scale, const RowSlopes & slopes) {
    // A logit j of another token has the slope -p_j in every logprob, so that only the sum of their slopes counts.
    double sum = slopes.logprob;
    bool is_zero = slopes.logprob == 0.0f && slopes.entropy == 0.0f;
    for (size_t k = 0; k < slopes.n_candidates; k++) {
        sum += double(slopes.candidate_logprobs[k]);
        is_zero = is_zero && slopes.candidate_logprobs[k] == 0.0f;
    }
    if (is_zero) {
        std::memset(logits, 0, size_t(n) * sizeof(float));
        return;
    }
    const RowStats stats = softmax_stats(logits, n, scale);
    row_kernel().gradient(
        logits, n, scale, float(double(stats.max) + stats.log_sum), stats.entropy, float(sum), slopes.entropy);
    logits[slopes.target] += slopes.logprob * scale;
    for (size_t k = 0; k < slopes.n_candidates; k++)
        logits[slopes.candidates[k]] += slopes.candidate_logprobs[k] * scale;
}

}  // namespace cria
