// Names the values of the trained weights that a sequence is sampled with: the live ones, which training changes, or a
// kept copy.
#pragma once

#include <cstdint>

namespace cria {

using PolicyVersion = uint64_t;

// The live weights, newer than every kept one: each optimizer step changes it.
constexpr PolicyVersion kLivePolicy = UINT64_MAX;

}  // namespace cria
