#include "math/softmax.h"

#include <cmath>
#include <cstdint>
#include <cstring>

// One binary for every x86-64: the loader picks the clone that the machine supports.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CRIA_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define CRIA_CLONES
#endif

namespace cria {

namespace {

// exp for x <= 0 within 2e-7 relative: 2^k e^r with |r| <= ln 2 / 2 and a degree-6 polynomial (Cephes expf's coefficients).
// Below -87 the result would be subnormal and counts as 0.
inline __attribute__((always_inline)) float fast_exp(float x) {
    const float clamped = x < -87.0f ? -87.0f : x;
    const float k = std::nearbyint(clamped * 1.44269504f);
    const float r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t bits = (int32_t(k) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : p * power;
}

constexpr int kBlock = kSumBlock;  // floats summed in single precision before they join the double

CRIA_CLONES float row_max(const float * x, int n, float scale) {
    float best = -INFINITY;
    for (int i = 0; i < n; i++) {
        const float z = x[i] * scale;
        best = z > best ? z : best;
    }
    return best;
}

// The blocks' own sums go to `sums`, unless it is null.
CRIA_CLONES double sum_exp(const float * x, int n, float scale, float max, double * sums) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock) {
        const int end = begin + kBlock < n ? begin + kBlock : n;
        float block = 0.0f;
        for (int i = begin; i < end; i++) block += fast_exp(x[i] * scale - max);
        total += double(block);
        if (sums) sums[begin / kBlock] = double(block);
    }
    return total;
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
    const double sum = sum_exp(logits, n, scale, stats.max, nullptr);
    const double log_sum = std::log(sum);
    stats.log_sum = float(log_sum);
    if (with_entropy) stats.entropy = float(log_sum - sum_exp_times(logits, n, scale, stats.max) / sum);
    return stats;
}

RowStats softmax_block_sums(const float * logits, int n, float scale, double * sums) {
    RowStats stats;
    stats.max = row_max(logits, n, scale);
    stats.log_sum = float(std::log(sum_exp(logits, n, scale, stats.max, sums)));
    return stats;
}

void softmax_weights(const float * logits, int n, float scale, float max, float * weights) {
    probabilities_of(logits, n, scale, max, weights);
}

void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities) {
    probabilities_of(logits, n, scale, stats.max + stats.log_sum, probabilities);
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
