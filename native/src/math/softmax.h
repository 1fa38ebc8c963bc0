// Log-softmax of one row of logits, as the sampler and the trainer both need it: the same logits give both the same
// bits. z = logits * scale (scale = 1/temperature). Loops over entries are row_kernel.h's; sums are kept in doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace cria {

// A row is read in tiles of this many entries, the last one shorter, and always as this many shares of whole tiles,
// share s from tile begin_tile(tiles, s) on: whoever holds a row reads them one after the other, and a streamed head
// one by one, without ever holding the row. The sums are added in the same order.
constexpr int kTile = 512, kShares = 16;
constexpr int count_tiles(int n) { return (n + kTile - 1) / kTile; }
constexpr int begin_tile(int tiles, int share) { return int(long(tiles) * share / kShares); }

// Sums over entries so far, with e = exp(z - max).
struct RunningSums {
    float max = -std::numeric_limits<float>::infinity();  // of z
    double sum = 0.0, weighted = 0.0, squares = 0.0;  // of e, of e (z - max), and on request of e^2

    struct Change {
        double factor, sum;  // by which the e of earlier entries are smaller now; of the tile's e
    };
    // Adds the entries of a tile, and replaces each by its e.
    Change absorb(float * tile, int count, float scale, bool with_squares);
};

// The sums of all shares, with the largest of their maxima.
RunningSums merge_sums(const RunningSums (&shares)[kShares]);

struct RowStats {
    float max = 0.0f;  // of z
    double log_sum = 0.0;  // log sum exp(z - max)
    float entropy = 0.0f;  // of softmax(z), in nats
};

RowStats describe_row(const RunningSums & sums);

// A tile's sum of e, and the maximum in it.
struct TileSum {
    float max;
    double sum;
};

// If `tiles` is given, it gets each tile's sum: a token is drawn by searching these, and then one tile's entries.
RowStats softmax_stats(const float * logits, int n, float scale, std::vector<TileSum> * tiles = nullptr);

// Sum of the squared probabilities of softmax(z), within (0, 1].
float sum_squared_probabilities(const float * logits, int n, float scale, const RowStats & stats);

// weights[j] = exp(logits[j] * scale - max).
void softmax_weights(const float * logits, int n, float scale, float max, float * weights);

// Logprob of the token with this logit.
inline float row_logprob(const RowStats & stats, float logit, float scale) {
    return float(double(logit * scale) - double(stats.max) - stats.log_sum);
}

// probabilities[j] = exp(logits[j] * scale - max - log_sum).
void softmax_probabilities(const float * logits, int n, float scale, const RowStats & stats, float * probabilities);

// Replaces x by softmax(x * scale); returns log sum exp(x * scale). n > 0. With `sink`, both count it as one more
// entry, which is not scaled.
float softmax_in_place(float * x, int n, float scale, const float * sink = nullptr);

// Replaces x by exp(x * scale - log_sum): recomputes the softmax from the result of softmax_in_place.
void softmax_again(float * x, int n, float scale, float log_sum);

// Replaces d by the gradient that reaches x, given that of p = softmax(x * scale); delta = sum p d.
void softmax_backward(float * d, const float * p, int n, float scale, float delta);

// Slopes of a loss by what is computed from one row of logits: by the logprob of a target, by the entropy, and by the
// logprobs of further tokens, which may repeat.
struct RowSlopes {
    int32_t target = 0;
    float logprob = 0.0f, entropy = 0.0f;
    const int32_t * candidates = nullptr;  // [n_candidates]
    const float * candidate_logprobs = nullptr;  // [n_candidates]
    size_t n_candidates = 0;
};

// Replaces logits by the loss's gradient.
void softmax_gradient(float * logits, int n, float scale, const RowSlopes & slopes);

}  // namespace cria
