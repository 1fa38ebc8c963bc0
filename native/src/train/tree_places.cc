#include "train/tree_places.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cria {

namespace {

// A token that the next one may continue.
struct Open {
    int32_t end, id, next;  // where its continuation ends; its id in the model's table; the time behind it
};

}  // namespace

std::vector<int32_t> place_trees(const MicroBatch & b, int32_t first_vector, const TokenPlaces & places) {
    if (!places.has_grids()) return b.positions;
    const size_t n = b.tokens.size(), length = size_t(b.row_length);
    std::vector<int32_t> positions(4 * n, 0);
    std::vector<Open> open;
    for (size_t i = 0; i < n; i++) {
        const int32_t at = int32_t(i % length), token = b.tokens[i];
        if (at == 0) open.clear();
        if (b.ends[i] == 0) continue;
        while (!open.empty() && open.back().end <= at) open.pop_back();
        const Open before = open.empty() ? Open{0, -1, b.positions[i]} : open.back();
        const int32_t id = token < first_vector ? token : b.vectors[size_t(token - first_vector)];
        int32_t next = before.next;
        const TokenPlace place = places.advance(before.id, id, next);
        open.push_back({b.ends[i], id, next});
        positions[i] = place.time;
        positions[n + i] = place.row;
        positions[2 * n + i] = place.column;
    }
    return positions;
}

std::vector<int32_t> find_ancestors(const MicroBatch & b, int64_t count) {
    const size_t n = b.tokens.size(), length = size_t(b.row_length);
    const auto none = int32_t(n);
    std::vector<int32_t> ancestors(n * size_t(count), none);
    std::vector<size_t> open;  // columns of the tokens that the next one may continue
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % length;
        if (at == 0) open.clear();
        if (b.ends[i] == 0) continue;
        while (!open.empty() && b.ends[open.back()] <= int32_t(at)) open.pop_back();
        for (size_t distance = 1; distance <= std::min(size_t(count), open.size()); distance++)
            ancestors[(distance - 1) * n + i] = int32_t(open[open.size() - distance]);
        open.push_back(i);
    }
    return ancestors;
}

std::vector<float> scale_queries(const std::vector<int32_t> & positions, const Architecture & architecture) {
    std::vector<float> scales;
    scales.reserve(positions.size());
    // In the types of llama.cpp's llm_graph_input_attn_temp.
    for (const int32_t position : positions) {
        const double steps = std::floor(float(position) / float(architecture.query_step));
        scales.push_back(float(std::log(steps + 1.0) * double(architecture.query_growth) + 1.0));
    }
    return scales;
}

}  // namespace cria
