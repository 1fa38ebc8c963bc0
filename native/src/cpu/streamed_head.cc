#include "cpu/streamed_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/tensor_products.h"

namespace cria {

namespace {

// A tile of logits is 512 x 512 floats: one megabyte, which fits a cache near the cores and is deep enough for both
// products.
constexpr int64_t kTileRows = 512, kTileColumns = kTile;

void multiply_by(float * x, int64_t n, float factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

// Processes row r of a tile: updates the sums, and replaces z by exp(z - max).
void absorb_row(
    const StreamedHead & head, HeadShare & share, int64_t row, float * logits, int64_t first, int64_t count) {
    if (head.factor != 1.0f) multiply_by(logits, count, head.factor);
    const int64_t target = head.targets[row] - first;
    if (target >= 0 && target < count) share.target[size_t(row)] = logits[target] * head.scale;
    const float factor =
        float(share.sums[size_t(row)].absorb(logits, int(count), head.scale, head.with_squares).factor);
    if (head.with_slopes && factor != 1.0f) multiply_by(share.mean.data() + row * head.width, head.width, factor);
}

}  // namespace

bool can_stream_head(ggml_type type) { return has_own_product(type); }

void run_head_share(const StreamedHead & head, int part, HeadShare & share, HeadWorkspace & workspace) {
    share.sums.assign(size_t(head.rows), RunningSums{});
    share.target.assign(size_t(head.rows), -INFINITY);
    share.mean.assign(head.with_slopes ? size_t(head.rows * head.width) : 0, 0.0f);
    workspace.tile.resize(size_t(kTileRows * kTileColumns));
    const int tiles = count_tiles(int(head.vocab));
    const bool is_f32 = head.w_type == GGML_TYPE_F32;
    for (int64_t row = 0; row < head.rows; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, head.rows - row);
        for (int64_t tile = begin_tile(tiles, part); tile < begin_tile(tiles, part + 1); tile++) {
            const int64_t first = tile * kTileColumns, columns = std::min(kTileColumns, head.vocab - first);
            const char * w = static_cast<const char *>(head.w) + first * head.w_row;
            const float * x = head.x + row * head.width;
            float * const logits = workspace.tile.data();
            if (fits_integers(head.w_type, false, head.width)) {
                run_integer_gemm({rows, columns, head.width, x, head.width, w, head.w_type, head.w_row, false, logits,
                                     kTileColumns, false},
                    0, 1, workspace.gemm.integers);
            } else {
                const int64_t column = is_f32 ? head.w_row / int64_t(sizeof(float)) : head.w_row;
                run_gemm({rows, columns, head.width, x, head.width, 1, w, head.w_type, 1, column, logits, kTileColumns,
                             false},
                    0, 1, workspace.gemm);
            }
            for (int64_t r = 0; r < rows; r++)
                absorb_row(head, share, row + r, logits + r * kTileColumns, first, columns);
            if (!head.with_slopes) continue;
            float * const mean = share.mean.data() + row * head.width;
            if (fits_integers(head.w_type, true, columns)) {
                run_integer_gemm({rows, head.width, columns, logits, kTileColumns, w, head.w_type, head.w_row, true,
                                     mean, head.width, true},
                    0, 1, workspace.gemm.integers);
            } else {
                const int64_t step = is_f32 ? head.w_row / int64_t(sizeof(float)) : head.w_row;
                run_gemm({rows, head.width, columns, logits, kTileColumns, 1, w, head.w_type, step, 1, mean, head.width,
                             true},
                    0, 1, workspace.gemm);
            }
        }
    }
}

HeadRow merge_head_row(const StreamedHead & head, const std::vector<HeadShare> & shares, int64_t i, float * slope) {
    const size_t row = size_t(i);
    RunningSums sums[kShares];
    float target = -INFINITY;
    for (size_t share = 0; share < kShares; share++) {
        sums[share] = shares[share].sums[row];
        target = std::max(target, shares[share].target[row]);
    }
    const RunningSums all = merge_sums(sums);
    const RowStats stats = describe_row(all);
    const HeadRow merged{float(double(target) - double(stats.max) - stats.log_sum), stats.entropy,
        float(all.squares / (all.sum * all.sum))};
    if (!slope) return merged;
    const char * w = static_cast<const char *>(head.w) + int64_t(head.targets[i]) * head.w_row;
    if (head.w_type == GGML_TYPE_F32) std::memcpy(slope, w, size_t(head.width) * sizeof(float));
    else dequantize_row(head.w_type, w, slope, head.width);
    for (const HeadShare & s : shares) {
        if (s.sums[row].sum == 0.0) continue;
        const float factor = float(std::exp(double(s.sums[row].max) - double(all.max)) / all.sum);
        const float * mean = s.mean.data() + i * head.width;
        for (int64_t j = 0; j < head.width; j++) slope[j] -= factor * mean[j];
    }
    for (int64_t j = 0; j < head.width; j++) slope[j] *= head.factor * head.scale;
    return merged;
}

}  // namespace cria
