// Draws one token from a row of logits and returns its logprob over the full vocabulary, or over the tokens that a
// grammar allows.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/scheduler.h"
#include "math/softmax.h"

namespace cria {

// If the forbidden tokens have less than this share of the probability, the token counts as sampled without constraint.
constexpr double kTakenShare = 1e-9;

struct Candidate {
    int32_t token;
    float logprob;
};

struct SampledToken {
    int32_t token;
    float logprob;
    bool constrained = false;  // tokens with more than kTakenShare were forbidden
    std::vector<Candidate> top;  // the `top_logprobs` most likely tokens by falling logprob, ties by id
};

// Scratch memory, reused from token to token.
class Sampler {
   public:
    // `index` counts the sampled tokens of the request: randomness depends only on (seed, index), never on timing.
    SampledToken sample(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index);

    // The same over only the tokens in `allowed`, a bit for each of n_vocab, at least one set. The logprob is over
    // them.
    SampledToken sample_allowed(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index,
        const std::vector<uint64_t> & allowed);

   private:
    // Draws a token without its logprob; `stats` receives the row's statistics.
    int32_t draw(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index, RowStats & stats);
    int32_t draw_from_all(const float * logits, int n_vocab, float scale, double u, RowStats & stats);
    std::vector<Candidate> list_likeliest(
        const float * logits, int n_vocab, size_t count, float scale, const RowStats & stats);

    std::vector<TileSum> tiles_;
    std::vector<float> probabilities_;
    std::vector<int32_t> candidates_;
    std::vector<float> allowed_, forbidden_;
    std::vector<int32_t> allowed_tokens_;
};

}  // namespace cria
