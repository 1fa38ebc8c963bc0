// Positions of tokens for models with multi-dimensional positions (M-RoPE; Qwen2-VL, arXiv:2409.12191). All vectors of
// an image have the same time and differ in row and column; the next token's time is behind the longer side. Any other
// token is one behind the last in all dimensions, and so is each vector in models with plain positions.
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
    // The place of `token`, which follows `last` (-1: it is the first). `next` holds the time behind `last` and becomes
    // the time behind `token`.
    TokenPlace advance(int32_t last, int32_t token, int32_t & next) const;
    // The time behind the first `count` tokens.
    int32_t behind(const int32_t * tokens, size_t count) const;

   private:
    bool has_grids_;
    const VectorTable & vectors_;
};

}  // namespace cria
