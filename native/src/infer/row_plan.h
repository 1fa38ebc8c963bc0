// Which slots a decode step evaluates: sequences in neighbouring slots share a physical batch (see scheduler_impl.h),
// so those that decode are brought together, and the holes that remain between them get rows of padding. Pure
// functions.
#pragma once

#include <utility>
#include <vector>

namespace cria {

// Pairs of slots whose contents should be swapped so that the active ones lie side by side: as few as possible, and
// none while the holes between them are fewer than an eighth of the active slots, for a swap costs about as much as a
// row.
std::vector<std::pair<int, int>> plan_swaps(const std::vector<bool> & active);

// The inactive slots that get a row of padding, ascending: holes of up to a dozen slots, for another physical batch
// would read all weights again, and as many at the ends as bring each batch to `min_rows` and a multiple of `row_step`.
std::vector<int> plan_padding(const std::vector<bool> & active, int min_rows, int row_step);

}  // namespace cria
