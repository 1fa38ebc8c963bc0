// Where tokens stand, for models whose positions have several dimensions (M-RoPE; Qwen2-VL, arXiv:2409.12191): the
// vectors of an image stand at one time, in its rows and columns, and what follows stands behind the longer side. Any
// other token stands one behind the last, in all dimensions; so does each vector for models of plain positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cria/vector_table.h"

struct llama_model;

namespace cria {

struct TokenPlace {
    int32_t time, row, column;
};

class TokenPlaces {
   public:
    TokenPlaces(const llama_model * model, const VectorTable & vectors);

    // Whether an image's vectors stand in a grid.
    bool has_grids() const { return has_grids_; }
    // Of `token`, which follows `last` (-1: it is the first); `next` is the time behind the one, then behind the other.
    TokenPlace advance(int32_t last, int32_t token, int32_t & next) const;
    // The time behind the first `count` tokens.
    int32_t behind(const int32_t * tokens, size_t count) const;

   private:
    bool has_grids_;
    const VectorTable & vectors_;
};

}  // namespace cria
