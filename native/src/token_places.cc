#include "cria/token_places.h"

#include <algorithm>

#include "llama.h"

namespace cria {

TokenPlaces::TokenPlaces(const llama_model * model, const VectorTable & vectors) : vectors_(vectors) {
    const llama_rope_type rope = llama_model_rope_type(model);
    has_grids_ = rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE;
}

TokenPlace TokenPlaces::advance(int32_t last, int32_t token, int32_t & next) const {
    const VectorGrid grid = has_grids_ && vectors_.is_vector(token) ? vectors_.grid_of(token) : VectorGrid{};
    if (grid.columns == 0) {
        const int32_t time = next++;
        return {time, time, time};
    }
    const int32_t extent = std::max(grid.columns, grid.rows), index = token - grid.first;
    // Within an image `next` is behind the whole image, at whichever of its vectors we are.
    const int32_t time = index > 0 && last == token - 1 ? next - extent : next;
    next = time + extent;
    return {time, time + index / grid.columns, time + index % grid.columns};
}

int32_t TokenPlaces::behind(const int32_t * tokens, size_t count) const {
    if (!has_grids_) return int32_t(count);
    int32_t next = 0;
    for (size_t i = 0; i < count; i++) advance(i > 0 ? tokens[i - 1] : -1, tokens[i], next);
    return next;
}

}  // namespace cria
