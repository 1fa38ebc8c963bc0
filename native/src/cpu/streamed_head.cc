#include "cpu/streamed_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/tensor_products.h"
#include "math/softmax.h"

namespace cria {

namespace {

// A tile of logits is 512 x 512 floats: one megabyte, which fits a cache near the cores and is deep enough for both
// products.
constexpr int64_t kTileRows = 512, kTileColumns = 512;

void multiply_by(float * x, int64_t n, float factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

// Processes row r of a tile: merges its maximum into the row's, updates the sums, and replaces z by exp(z - max).
void absorb_row(
    const StreamedHead & head, HeadShare & share, int64_t row, float * logits, int64_t first, int64_t count) {
    const int64_t target = head.targets[row] - first;
    if (target >= 0 && target < count) share.target[size_t(row)] = logits[target] * head.scale;
    const float old = share.max[size_t(row)], max = std::max(old, scaled_max(logits, int(count), head.scale));
    if (max > old) {
        double & sum = share.sum[size_t(row)];
        double & weighted = share.weighted[size_t(row)];
        const double factor = std::isinf(old) ? 0.0 : std::exp(double(old) - double(max));
        weighted = sum > 0.0 ? factor * (weighted + (double(old) - double(max)) * sum) : 0.0;
        sum *= factor;
        share.squares[size_t(row)] *= factor * factor;
        if (head.with_slopes) multiply_by(share.mean.data() + row * head.width, head.width, float(factor));
        share.max[size_t(row)] = max;
    }
    if (head.with_squares) share.squares[size_t(row)] += sum_exp_squares(logits, int(count), head.scale, max);
    const ExpSums sums = exp_in_place(logits, int(count), head.scale, max);
    share.sum[size_t(row)] += sums.sum;
    share.weighted[size_t(row)] += sums.weighted;
}

}  // namespace

bool can_stream_head(ggml_type type) { return has_own_product(type); }

void run_head_share(const StreamedHead & head, int part, int parts, HeadShare & share, HeadWorkspace & workspace) {
    share.max.assign(size_t(head.rows), -INFINITY);
    share.target.assign(size_t(head.rows), -INFINITY);
    share.sum.assign(size_t(head.rows), 0.0);
    share.weighted.assign(size_t(head.rows), 0.0);
    share.squares.assign(size_t(head.rows), 0.0);
    share.mean.assign(head.with_slopes ? size_t(head.rows * head.width) : 0, 0.0f);
    workspace.tile.resize(size_t(kTileRows * kTileColumns));
    const int64_t tiles = (head.vocab + kTileColumns - 1) / kTileColumns;
    const bool is_f32 = head.w_type == GGML_TYPE_F32;
    for (int64_t row = 0; row < head.rows; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, head.rows - row);
        for (int64_t tile = tiles * part / parts; tile < tiles * (part + 1) / parts; tile++) {
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
    double max = -INFINITY, target = -INFINITY, sum = 0.0, weighted = 0.0, squares = 0.0;
    for (const HeadShare & s : shares) {
        max = std::max(max, double(s.max[row]));
        target = std::max(target, double(s.target[row]));
    }
    for (const HeadShare & s : shares) {
        if (s.sum[row] == 0.0) continue;
        const double shift = double(s.max[row]) - max, factor = std::exp(shift);
        sum += factor * s.sum[row];
        weighted += factor * (s.weighted[row] + shift * s.sum[row]);
        squares += factor * factor * s.squares[row];
    }
    const HeadRow merged{
        float(target - max - std::log(sum)), float(std::log(sum) - weighted / sum), float(squares / (sum * sum))};
    if (!slope) return merged;
    const char * w = static_cast<const char *>(head.w) + int64_t(head.targets[i]) * head.w_row;
    if (head.w_type == GGML_TYPE_F32) std::memcpy(slope, w, size_t(head.width) * sizeof(float));
    else dequantize_row(head.w_type, w, slope, head.width);
    for (const HeadShare & s : shares) {
        if (s.sum[row] == 0.0) continue;
        const float factor = float(std::exp(double(s.max[row]) - max) / sum);
        const float * mean = s.mean.data() + i * head.width;
        for (int64_t j = 0; j < head.width; j++) slope[j] -= factor * mean[j];
    }
    for (int64_t j = 0; j < head.width; j++) slope[j] *= head.scale;
    return merged;
}

}  // namespace cria
