// The tokens with the largest logits of a row, as the sampler and the trainer both report them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cria {

// Replaces `tokens` by the `count` tokens with the largest logits, by falling logit, ties by id; by all `n` if they are
// fewer. `count` is at least 1. The logits must have an order: none is NaN.
void find_likeliest(const float * logits, int n, size_t count, std::vector<int32_t> & tokens);

}  // namespace cria
