// Where the tokens of a micro-batch stand.
#pragma once

#include <cstdint>
#include <vector>

#include "cria/trainer.h"
#include "cria/token_places.h"

namespace cria {

// The batch's positions; where images have rows and columns, four for each token, one dimension after the other: time,
// row, column, and 0. A token's place then follows from those that it continues, from the row's first position on.
std::vector<int32_t> place_trees(const MicroBatch & batch, int32_t first_vector, const TokenPlaces & places);

}  // namespace cria
