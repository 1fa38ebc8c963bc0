#include "math/softmax.h"

#include <cmath>
#include <cstring>

#include "math/fast_exp.h"

namespace cria {

namespace {

constexpr int kBlock = 256;  // floats summed in single precision before they join the double

CRIA_CLONES float row_max(const float * x, int n, float scale) {
    // Lane by lane: a maximum over all is not vectorised where NaN counts.
    constexpr int kLanes = 16;
    float lanes[kLanes];
    for (float & lane : lanes) lane = -INFINITY;
    const int whole = n / kLanes * kLanes;
    for (int i = 0; i < whole; i += kLanes) {
        for (int j = 0; j < kLanes; j++) {
            const float z = x[i + j] * scale;
            lanes[j] = z > lanes[j] ? z : lanes[j];
        }
    }
    float best = -INFINITY;
    for (const float lane : lanes) best = lane > best ? lane : best;
    for (int i = whole; i < n; i++) best = x[i] * scale > best ? x[i] * scale : best;
    return best;
}

CRIA_CLONES double sum_exp(const float * x, int n, float scale, float max) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock) {
        const int end = begin + kBlock < n ? begin + kBlock : n;
        float block = 0.0f;
        for (int i = begin; i < end; i++) block += fast_exp(x[i] * scale - max);
        total += double(block);
    }
    return total;
}

CRIA_CLONES void block_sums_of(const float * x, int n, float scale, float max, float * sums) {
    const int whole = n / kSumBlock;
    for (int block = 0; block < whole; block++) {
        const float * from = x + block * kSumBlock;
        float sum = 0.0f;
        for (int i = 0; i < kSumBlock; i++) sum += fast_exp(from[i] * scale - max);
        sums[block] = sum;
    }
    if (whole * kSumBlock == n) return;
    float rest = 0.0f;
    for (int i = whole * kSumBlock; i < n; i++) rest += fast_exp(x[i] * scale - max);
    sums[whole] = rest;
}

// sum of exp(z - max) * (z - max)
CRIA_CLONES double sum_exp_times(const float * x, int n, float scale, float max) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock) {
        const int end = begin + kBlock < n ? begin + kBlock : n;
        float block = 0.0f;
        for (int i = begin; i < end; i++) {
            const float shifted = x[i] * scale - max;
            // exp is exactly 0 below -87, and 0 * -inf must not become NaN.
            const float bounded = shifted < -88.0f ? -88.0f : shifted;
            block += fast_exp(bounded) * bounded;
        }
        total += double(block);
    }
    return total;
}

CRIA_CLONES void probabilities_of(const float * x, int n, float scale, float offset, float * out) {
    for (int i = 0; i < n; i++) out[i] = fast_exp(x[i] * scale - offset);
}

CRIA_CLONES float replace_by_exp(float * x, int n, float scale, float max) {
    float total = 0.0f;
    for (int i = 0; i < n; i++) {
        x[i] = fast_exp(x[i] * scale - max);
        total += x[i];
    }
    return total;
}

CRIA_CLONES double replace_by_exp_times(float * x, int n, float scale, float max, double & weighted) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock) {
        const int end = begin + kBlock < n ? begin + kBlock : n;
        float sum = 0.0f, times = 0.0f;
        for (int i = begin; i < end; i++) {
            const float shifted = x[i] * scale - max;
            const float bounded = shifted < -88.0f ? -88.0f : shifted;
            const float e = fast_exp(bounded);
            x[i] = e;
            sum += e;
            times += e * bounded;
        }
        total += double(sum);
        weighted += double(times);
    }
    return total;
}

CRIA_CLONES void multiply_by(float * x, int n, float factor) {
    for (int i = 0; i < n; i++) x[i] *= factor;
}

CRIA_CLONES void backward_of(float * d, const float * p, int n, float scale, float delta) {
    for (int i = 0; i < n; i++) d[i] = p[i] * (d[i] - delta) * scale;
}

CRIA_CLONES void gradient_of(float * x, int n, float scale, float offset, float entropy, float c, float e) {
    for (int i = 0; i < n; i++) {
        const float logprob = x[i] * scale - offset;
        const float bounded = logprob < -88.0f ? -88.0f : logprob;
        x[i] = -fast_exp(bounded) * (c + e * (bounded + entropy)) * scale;
    }
}

}  // namespace

RowStats softmax_stats(const float * logits, int n, float scale, bool with_entropy) {
    RowStats stats;
    stats.max = row_max(logits, n, scale);
    const double sum = sum_exp(logits, n, scale, stats.max);
    const double log_sum = std::log(sum);
    stats.log_sum = float(log_sum);
    if (with_entropy) stats.entropy = float(log_sum - sum_exp_times(logits, n, scale, stats.max) / sum);
    return stats;
}

RowStats softmax_block_sums(const float * logits, int n, float scale, float * sums) {
    RowStats stats;
    stats.max = row_max(logits, n, scale);
    block_sums_of(logits, n, scale, stats.max, sums);
    double total = 0.0;
    for (int block = 0; block * kSumBlock < n; block++) total += double(sums[block]);
    stats.log_sum = float(std::log(total));
    return stats;
}

void softmax_weights(const float * logits, int n, float scale, float max, float * weights) {
    probabilities_of(logits, n, scale, max, weights);
}

void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities) {
    probabilities_of(logits, n, scale, stats.max + stats.log_sum, probabilities);
}

float scaled_max(const float * x, int n, float scale) { return row_max(x, n, scale); }

ExpSums exp_in_place(float * x, int n, float scale, float max) {
    ExpSums sums;
    sums.sum = replace_by_exp_times(x, n, scale, max, sums.weighted);
    return sums;
}

float softmax_in_place(float * x, int n, float scale) {
    const float max = row_max(x, n, scale);
    const float sum = replace_by_exp(x, n, scale, max);
    multiply_by(x, n, 1.0f / sum);
    return max + std::log(sum);
}

void softmax_again(float * x, int n, float scale, float log_sum) { probabilities_of(x, n, scale, log_sum, x); }

void softmax_backward(float * d, const float * p, int n, float scale, float delta) { backward_of(d, p, n, scale, delta); }

void softmax_gradient(float * logits, int n, float scale, int target, float c, float e) {
    if (c == 0.0f && e == 0.0f) {
        std::memset(logits, 0, size_t(n) * sizeof(float));
        return;
    }
    const RowStats stats = softmax_stats(logits, n, scale, e != 0.0f);
    gradient_of(logits, n, scale, stats.max + stats.log_sum, stats.entropy, c, e);
    logits[target] += c * scale;
}

}  // namespace cria
