#include "math/softmax.h"

#include <cmath>
#include <cstring>

#include "math/row_kernel.h"

namespace cria {

RowStats softmax_stats(const float * logits, int n, float scale, bool with_entropy) {
    RowStats stats;
    stats.max = row_kernel().largest(logits, n, scale);
    const double sum = row_kernel().sum_exp(logits, n, scale, stats.max);
    const double log_sum = std::log(sum);
    stats.log_sum = float(log_sum);
    if (with_entropy) stats.entropy = float(log_sum - row_kernel().sum_exp_times(logits, n, scale, stats.max) / sum);
    return stats;
}

double sum_exp_squares(const float * logits, int n, float scale, float max) {
    return row_kernel().sum_exp(logits, n, 2.0f * scale, 2.0f * max);
}

float sum_squared_probabilities(const float * logits, int n, float scale, const RowStats & stats) {
    return float(sum_exp_squares(logits, n, scale, stats.max) * std::exp(-2.0 * double(stats.log_sum)));
}

RowStats softmax_block_sums(const float * logits, int n, float scale, float * sums) {
    RowStats stats;
    stats.max = row_kernel().largest(logits, n, scale);
    row_kernel().block_sums(logits, n, scale, stats.max, sums);
    double total = 0.0;
    for (int block = 0; block * kSumBlock < n; block++) total += double(sums[block]);
    stats.log_sum = float(std::log(total));
    return stats;
}

void softmax_weights(const float * logits, int n, float scale, float max, float * weights) {
    row_kernel().exp_of(logits, n, scale, max, weights);
}

void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities) {
    row_kernel().exp_of(logits, n, scale, stats.max + stats.log_sum, probabilities);
}

float scaled_max(const float * x, int n, float scale) { return row_kernel().largest(x, n, scale); }

ExpSums exp_in_place(float * x, int n, float scale, float max) {
    ExpSums sums;
    sums.sum = row_kernel().replace_by_exp_times(x, n, scale, max, sums.weighted);
    return sums;
}

float softmax_in_place(float * x, int n, float scale) {
    const float max = row_kernel().largest(x, n, scale);
    const float sum = row_kernel().replace_by_exp(x, n, scale, max);
    row_kernel().scale_row(x, n, 1.0f / sum);
    return max + std::log(sum);
}

void softmax_again(float * x, int n, float scale, float log_sum) { row_kernel().exp_of(x, n, scale, log_sum, x); }

void softmax_backward(float * d, const float * p, int n, float scale, float delta) {
    row_kernel().backward(d, p, n, scale, delta);
}

void softmax_gradient(float * logits, int n, float scale, int target, float c, float e) {
    if (c == 0.0f && e == 0.0f) {
        std::memset(logits, 0, size_t(n) * sizeof(float));
        return;
    }
    const RowStats stats = softmax_stats(logits, n, scale, e != 0.0f);
    row_kernel().gradient(logits, n, scale, stats.max + stats.log_sum, stats.entropy, c, e);
    logits[target] += c * scale;
}

}  // namespace cria
