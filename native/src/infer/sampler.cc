#include "infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "math/likeliest.h"

namespace cria {

namespace {

// SplitMix64 (Steele, Lea, Flood 2014) as a counter-based generator: a uniform double in [0, 1) from (seed, index).
double uniform(uint32_t seed, uint64_t index) {
    uint64_t x = (uint64_t(seed) << 32 | 0x5eedu) + (index + 1) * 0x9e3779b97f4a7c15ull;
    for (int round = 0; round < 2; round++) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        x ^= x >> 31;
    }
    return double(x >> 11) * 0x1.0p-53;
}

// Factor for the logits. Greedy sampling reports logprobs at temperature 1.
float scale_of(const GenerateParams & params) { return params.temperature <= 0.0f ? 1.0f : 1.0f / params.temperature; }

}  // namespace

SampledToken Sampler::sample(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index) {
    RowStats stats;
    const int32_t token = draw(logits, n_vocab, params, index, stats);
    const float scale = scale_of(params);
    SampledToken sampled{};
    sampled.token = token;
    sampled.logprob = row_logprob(stats, logits[token], scale);
    // Logits that are not finite have no order, and give no result.
    if (params.top_logprobs > 0 && std::isfinite(sampled.logprob))
        sampled.top = list_likeliest(logits, n_vocab, size_t(params.top_logprobs), scale, stats);
    return sampled;
}

int32_t Sampler::draw(
    const float * logits, int n_vocab, const GenerateParams & params, uint64_t index, RowStats & stats) {
    const bool greedy = params.temperature <= 0.0f;
    const float scale = scale_of(params);
    if (!greedy && params.top_k <= 0 && params.top_p >= 1.0f && params.min_p <= 0.0f) {
        return draw_from_all(logits, n_vocab, scale, uniform(params.seed, index), stats);
    }
    stats = softmax_stats(logits, n_vocab, scale);
    if (greedy) return int32_t(std::max_element(logits, logits + n_vocab) - logits);

    probabilities_.resize(size_t(n_vocab));
    softmax_probabilities(logits, n_vocab, scale, stats, probabilities_.data());
    const double u = uniform(params.seed, index);
    // Candidates by falling probability, ties by id, so that the cut does not depend on the order of a partial sort.
    const auto likelier = [&](int32_t a, int32_t b) {
        const float pa = probabilities_[size_t(a)], pb = probabilities_[size_t(b)];
        return pa != pb ? pa > pb : a < b;
    };
    candidates_.clear();
    const float floor =
        params.min_p > 0 ? params.min_p * *std::max_element(probabilities_.begin(), probabilities_.end()) : 0.0f;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (probabilities_[size_t(i)] >= floor) candidates_.push_back(i);
    }
    if (params.top_k > 0 && size_t(params.top_k) < candidates_.size()) {
        std::nth_element(candidates_.begin(), candidates_.begin() + params.top_k, candidates_.end(), likelier);
        candidates_.resize(size_t(params.top_k));
    }
    double mass = 0.0;
    if (params.top_p < 1.0f) {
        // Sorts only as far as needed: the most likely few of a vocabulary usually suffice.
        size_t kept = 0, sorted = 0;
        while (kept < candidates_.size() && mass < double(params.top_p)) {
            if (kept == sorted) {
                const auto begin = candidates_.begin() + long(sorted);
                sorted = std::min(candidates_.size(), std::max<size_t>(256, 8 * sorted));
                std::partial_sort(begin, candidates_.begin() + long(sorted), candidates_.end(), likelier);
            }
            mass += double(probabilities_[size_t(candidates_[kept++])]);
        }
        candidates_.resize(kept);
    } else {
        std::sort(candidates_.begin(), candidates_.end());
        for (const int32_t i : candidates_) mass += double(probabilities_[size_t(i)]);
    }
    double sum = 0.0;
    for (const int32_t i : candidates_) {
        sum += double(probabilities_[size_t(i)]);
        if (sum > u * mass) return i;
    }
    return candidates_.back();
}

std::vector<Candidate> Sampler::list_likeliest(
    const float * logits, int n_vocab, size_t count, float scale, const RowStats & stats) {
    find_likeliest(logits, n_vocab, count, candidates_);
    std::vector<Candidate> likeliest;
    likeliest.reserve(candidates_.size());
    for (const int32_t i : candidates_) likeliest.push_back({i, row_logprob(stats, logits[i], scale)});
    return likeliest;
}

SampledToken Sampler::sample_allowed(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index,
    const std::vector<uint64_t> & allowed) {
    // Samples from a shorter row of logits; the result is an index among the allowed tokens.
    allowed_.resize(size_t(n_vocab));
    forbidden_.resize(size_t(n_vocab));
    size_t n_allowed = 0, n_forbidden = 0;
    for (size_t i = 0; i < size_t(n_vocab); i++) {
        const bool is_allowed = allowed[i / 64] >> (i % 64) & 1;
        allowed_[n_allowed] = forbidden_[n_forbidden] = logits[i];
        n_allowed += is_allowed ? 1 : 0;
        n_forbidden += is_allowed ? 0 : 1;
    }
    SampledToken sampled = sample(allowed_.data(), int(n_allowed), params, index);
    int32_t token = -1;
    for (int32_t left = sampled.token; left >= 0; left--) {
        do token++;
        while (!(allowed[size_t(token) / 64] >> (token % 64) & 1));
    }
    sampled.token = token;
    if (!sampled.top.empty()) {
        allowed_tokens_.clear();
        for (int32_t i = 0; i < n_vocab; i++) {
            if (allowed[size_t(i) / 64] >> (i % 64) & 1) allowed_tokens_.push_back(i);
        }
        for (Candidate & candidate : sampled.top) candidate.token = allowed_tokens_[size_t(candidate.token)];
    }
    if (n_forbidden == 0) return sampled;
    const float scale = scale_of(params);
    const RowStats in = softmax_stats(allowed_.data(), int(n_allowed), scale);
    const RowStats out = softmax_stats(forbidden_.data(), int(n_forbidden), scale);
    // log of forbidden over allowed. NaN when a forbidden logit is: as with allowed ones, the logprob reports it.
    const double ratio = (double(out.max) + out.log_sum) - (double(in.max) + in.log_sum);
    if (std::isnan(ratio)) sampled.logprob = std::numeric_limits<float>::quiet_NaN();
    sampled.constrained = ratio > std::log(kTakenShare);
    return sampled;
}

// Draws from the whole vocabulary: a tile by the tiles' sums, then one of its entries.
int32_t Sampler::draw_from_all(const float * logits, int n_vocab, float scale, double u, RowStats & stats) {
    stats = softmax_stats(logits, n_vocab, scale, &tiles_);
    double total = 0.0;
    for (TileSum & tile : tiles_) {
        tile.sum *= std::exp(double(tile.max) - double(stats.max));
        total += tile.sum;
    }
    double left = u * total;
    size_t at = 0;
    while (at + 1 < tiles_.size() && left >= tiles_[at].sum) left -= tiles_[at++].sum;
    // Rounding may lead past the last tile with a positive weight.
    while (at > 0 && tiles_[at].sum <= 0.0) at--;
    const int begin = int(at) * kTile, count = std::min(kTile, n_vocab - begin);
    float weights[kTile];
    softmax_weights(logits + begin, count, scale, stats.max, weights);
    int chosen = 0;
    for (int i = 0; i < count; i++) {
        if (weights[i] > 0.0f) chosen = i;
        left -= double(weights[i]);
        if (left < 0.0) break;
    }
    return begin + chosen;
}

}  // namespace cria
