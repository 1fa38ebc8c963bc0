// The slots that a decode step evaluates. Sequences in neighbouring slots share a physical batch (see
// scheduler_impl.h), so decoding slots are moved together, and remaining holes between them get padding rows. Pure
// functions.
#pragma once

#include <utility>
#include <vector>

namespace cria {

// Pairs of slots whose contents should be swapped so that the active ones are adjacent: as few as possible, and none
// while the holes between them are fewer than an eighth of the active slots, because a swap costs about as much as a
// row.
std::vector<std::pair<int, int>> plan_swaps(const std::vector<bool> & active);

// The inactive slots that get a padding row, ascending: holes of up to a dozen slots, because another physical batch
// would read all weights again, and as many at the ends as bring each batch to `min_rows` and a multiple of `row_step`.
std::vector<int> plan_padding(const std::vector<bool> & active, int min_rows, int row_step);

}  // namespace cria
