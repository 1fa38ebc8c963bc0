// Draws one token from a row of logits and tells its logprob over the full vocabulary, or over what a grammar allows.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/scheduler.h"
#include "math/softmax.h"

namespace cria {

// Below this share of the probability what a grammar forbids is not worth the name: the token is as if sampled freely.
constexpr double kTakenShare = 1e-9;

struct Candidate {
    int32_t token;
    float logprob;
};

struct SampledToken {
    int32_t token;
    float logprob;
    bool constrained = false;  // tokens with more than kTakenShare were forbidden
    std::vector<Candidate> top;  // the likeliest top_logprobs tokens by falling logprob, ties by id
};

// Scratch memory, reused from token to token.
class Sampler {
   public:
    // `index` counts the sampled tokens of the request: randomness depends on (seed, index) alone, never on timing.
    SampledToken sample(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index);

    // The same from the tokens in `allowed` alone, a bit for each of n_vocab, at least one set; the logprob is over
    // them.
    SampledToken sample_allowed(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index,
        const std::vector<uint64_t> & allowed);

   private:
    // What was drawn, without its logprob; `stats` becomes the row's.
    int32_t draw(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index, RowStats & stats);
    int32_t draw_from_all(const float * logits, int n_vocab, float scale, double u, RowStats & stats);
    std::vector<Candidate> find_likeliest(
        const float * logits, int n_vocab, size_t count, float scale, const RowStats & stats);

    std::vector<float> block_sums_;
    std::vector<float> probabilities_;
    std::vector<int32_t> candidates_;
    std::vector<float> allowed_, forbidden_;
    std::vector<int32_t> allowed_tokens_;
};

}  // namespace cria
