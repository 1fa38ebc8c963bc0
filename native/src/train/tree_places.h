// Positions of the tokens of a micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/trainer.h"
#include "cria/token_places.h"

namespace cria {

// The batch's positions. If images have rows and columns, there are four for each token, one dimension after the other:
// time, row, column, and 0. A token's place then follows from its ancestors, starting at the row's first position.
std::vector<int32_t> place_trees(const MicroBatch & batch, int32_t first_vector, const TokenPlaces & places);

}  // namespace cria
