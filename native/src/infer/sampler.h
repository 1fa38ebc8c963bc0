// Draws one token from a row of logits and tells its logprob over the full vocabulary.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/scheduler.h"

namespace cria {

struct SampledToken {
    int32_t token;
    float logprob;
};

// Scratch memory, reused from token to token.
class Sampler {
   public:
    // `index` counts the sampled tokens of the request: randomness depends on (seed, index) alone, never on timing.
    SampledToken sample(const float * logits, int n_vocab, const GenerateParams & params, uint64_t index);

   private:
    SampledToken sample_all(const float * logits, int n_vocab, float scale, double u);

    std::vector<float> block_sums_;
    std::vector<float> probabilities_;
    std::vector<int32_t> candidates_;
};

}  // namespace cria
