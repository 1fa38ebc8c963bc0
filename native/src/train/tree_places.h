// Positions and ancestors of the tokens of a micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "architecture.h"
#include "cria/trainer.h"
#include "cria/token_places.h"

namespace cria {

// The batch's positions. If images have rows and columns, there are four for each token, one dimension after the other:
// time, row, column, and 0. A token's place then follows from its ancestors, starting at the row's first position.
std::vector<int32_t> place_trees(const MicroBatch & batch, int32_t first_vector, const TokenPlaces & places);

// The ancestor of each token that is 1 to `count` tokens before it in its sequence, as a column of the batch: those at
// distance 1 for all tokens, then at distance 2 and so on. The number of the batch's tokens stands for none.
std::vector<int32_t> find_ancestors(const MicroBatch & batch, int64_t count);

// The factors of queries at these positions (Architecture::query_growth).
std::vector<float> scale_queries(const std::vector<int32_t> & positions, const Architecture & architecture);

}  // namespace cria
