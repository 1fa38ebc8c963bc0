// Log-softmax of one row of logits, as the sampler and the trainer both need it. z = logits * scale
// (scale = 1/temperature). Loops over entries are row_kernel.h's; sums are kept in doubles per block.
#pragma once

namespace cria {

struct RowStats {
    float max = 0.0f;  // of z
    float log_sum = 0.0f;  // log sum exp(z - max)
    float entropy = 0.0f;  // of softmax(z), in nats; only on request
};

RowStats softmax_stats(const float * logits, int n, float scale, bool with_entropy);

// Sum of exp(z - max)^2. Divided by the square of the sum of exp(z - max) it is the sum of the squared probabilities.
double sum_exp_squares(const float * logits, int n, float scale, float max);
// Sum of the squared probabilities of softmax(z), within (0, 1].
float sum_squared_probabilities(const float * logits, int n, float scale, const RowStats & stats);

// softmax_stats without the entropy, and the sums of exp(z - max) over blocks of kSumBlock entries each, the last one
// shorter. A token is then drawn by searching only the blocks' sums and the entries of one block.
constexpr int kSumBlock = 64;
RowStats softmax_block_sums(const float * logits, int n, float scale, float * sums);

// weights[j] = exp(logits[j] * scale - max).
void softmax_weights(const float * logits, int n, float scale, float max, float * weights);

// Logprob of the token with this logit.
inline float row_logprob(const RowStats & stats, float logit, float scale) {
    return (logit * scale - stats.max) - stats.log_sum;
}

// probabilities[j] = exp(logits[j] * scale - max - log_sum).
void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities);

// The largest x * scale.
float scaled_max(const float * x, int n, float scale);

// Sums over e = exp(z - max): of e, and of e (z - max).
struct ExpSums {
    double sum = 0.0, weighted = 0.0;
};

// Replaces x by exp(x * scale - max), for a max that is no smaller than any x * scale.
ExpSums exp_in_place(float * x, int n, float scale, float max);

// Replaces x by softmax(x * scale); returns log sum exp(x * scale). n > 0.
float softmax_in_place(float * x, int n, float scale);

// Replaces x by exp(x * scale - log_sum): recomputes the softmax from the result of softmax_in_place.
void softmax_again(float * x, int n, float scale, float log_sum);

// Replaces d by the gradient that reaches x, given that of p = softmax(x * scale); delta = sum p d.
void softmax_backward(float * d, const float * p, int n, float scale, float delta);

// Replaces logits by d(c * logprob[target] + e * entropy)/dlogits.
void softmax_gradient(float * logits, int n, float scale, int target, float c, float e);

}  // namespace cria
