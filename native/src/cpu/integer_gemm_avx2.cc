#include "cpu/integer_gemm_avx2.h"

#include <algorithm>

#include "cpu/few_q8_rows_avx2.h"
#include "cpu/gemm.h"
#include "cpu/integer_rows_avx2.h"
#include "cpu/integer_weights_avx2.h"

namespace cria {

namespace {

using namespace avx2;

// Deep, so that few sums go to memory and back: a panel of W takes 20 KiB of the first-level cache. kBlockColumns is a
// multiple of every quantization block.
constexpr int64_t kDepth = 640, kBlockRows = 48, kBlockColumns = 256;

// c [kRows, kColumns] (+)= the product of a panel of X and one of W.
void run_tile(int64_t blocks, const int16_t * x, const float * x_scales, const int16_t * w, const float * w_scales,
    float * c, int64_t c_row, bool accumulate) {
    for (int64_t b = 0; b < blocks;
        b++, x += kBlock * kRows, x_scales += kRows, w += kBlock * kColumns, w_scales += kColumns) {
        __m256i sums[kRows][2];
#pragma GCC unroll 4
        for (auto & row : sums) row[0] = row[1] = _mm256_setzero_si256();
#pragma GCC unroll 16
        for (int p = 0; p < kBlock / 2; p++) {
            const __m256i w0 = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(w + 2 * p * kColumns));
            const __m256i w1 = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(w + (2 * p + 1) * kColumns));
#pragma GCC unroll 4
            for (int i = 0; i < kRows; i++) {
                int32_t pair;
                std::memcpy(&pair, x + 2 * (p * kRows + i), sizeof pair);
                const __m256i both = _mm256_set1_epi32(pair);
                sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(w0, both));
                sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(w1, both));
                // Emits no instruction. Without it the compiler adds the products up as a tree, and runs out of
                // registers.
                asm("" : "+x"(sums[i][0]), "+x"(sums[i][1]));
            }
        }
        const __m256 s0 = _mm256_loadu_ps(w_scales), s1 = _mm256_loadu_ps(w_scales + 8);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; i++) {
            const __m256 scale = _mm256_set1_ps(x_scales[i]);
            float * out = c + i * c_row;
            const __m256 old0 = accumulate ? _mm256_loadu_ps(out) : _mm256_setzero_ps(),
                         old1 = accumulate ? _mm256_loadu_ps(out + 8) : _mm256_setzero_ps();
            _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i][0]), _mm256_mul_ps(scale, s0), old0));
            _mm256_storeu_ps(out + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i][1]), _mm256_mul_ps(scale, s1), old1));
        }
        accumulate = true;
    }
}

// Packs columns [j0, j0 + width) of [p0, p0 + depth) into ws.w.
void pack_w(const IntegerGemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, IntegerWorkspace & ws) {
    const int64_t blocks = depth / kBlock;
    if (!g.transposed) {
        for (int64_t j = 0; j < width; j += kColumns) {
            const uint8_t * w = static_cast<const uint8_t *>(g.w) + (j0 + j) * g.w_row + p0 / kBlock * kQ8Bytes;
            pack_q8_panel(w, g.w_row, blocks, std::min<int64_t>(kColumns, width - j), ws.w.data() + j * depth,
                ws.w_scales.data() + j * blocks);
        }
        return;
    }
    const char * w = static_cast<const char *>(g.w) + p0 * g.w_row + ggml_row_size(g.w_type, j0);
    // Columns behind the last are packed and multiplied too, but not stored.
    const int64_t bytes = int64_t(ggml_row_size(g.w_type, width));
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t p = 0; p < kBlock; p++, w += g.w_row) {
            // Rows are far apart, so no hardware prefetcher predicts them.
            for (int64_t byte = 0; byte < bytes; byte += 64) _mm_prefetch(w + 16 * g.w_row + byte, _MM_HINT_T0);
            dequantize_row(g.w_type, w, ws.floats.data() + p * kBlockColumns, width);
        }
        for (int64_t j = 0; j < width; j += kColumns) {
            pack_float_block(ws.floats.data() + j, kBlockColumns, ws.w.data() + j * depth + b * kBlock * kColumns,
                ws.w_scales.data() + j * blocks + b * kColumns);
        }
    }
}

// Multiplies rows [i_begin, i_end) by the weights that pack_w left in the workspace.
void multiply_block(const IntegerGemm & g, const float * rounded, int64_t i_begin, int64_t i_end, int64_t p0,
    int64_t depth, int64_t j0, int64_t width, IntegerWorkspace & ws) {
    const int64_t blocks = depth / kBlock;
    const bool accumulate = g.accumulate || p0 > 0;
    for (int64_t j = 0; j < width; j += kColumns) {
        const int16_t * w = ws.w.data() + j * depth;
        const float * w_scales = ws.w_scales.data() + j * blocks;
        for (int64_t i = i_begin; i < i_end; i += kRows) {
            const float * panel = rounded + i * rounded_size(g.k);
            const int16_t * x = reinterpret_cast<const int16_t *>(panel) + p0 * kRows;
            const float * x_scales = panel + kRows * g.k / 2 + p0 / kBlock * kRows;
            const int64_t full_rows = std::min<int64_t>(kRows, i_end - i),
                          full_columns = std::min<int64_t>(kColumns, width - j);
            float * c = g.c + i * g.c_row + j0 + j;
            if (full_rows == kRows && full_columns == kColumns) {
                for (int r = 0; r < kRows; r++)
                    _mm_prefetch(reinterpret_cast<const char *>(c + r * g.c_row), _MM_HINT_T0);
                run_tile(blocks, x, x_scales, w, w_scales, c, g.c_row, accumulate);
                continue;
            }
            float tile[kRows * kColumns];
            for (int64_t r = 0; accumulate && r < full_rows; r++)
                std::memcpy(tile + r * kColumns, c + r * g.c_row, size_t(full_columns) * sizeof(float));
            run_tile(blocks, x, x_scales, w, w_scales, tile, kColumns, accumulate);
            for (int64_t r = 0; r < full_rows; r++)
                std::memcpy(c + r * g.c_row, tile + r * kColumns, size_t(full_columns) * sizeof(float));
        }
    }
}

}  // namespace

namespace avx2 {

WorkspaceSizes workspace_sizes(const IntegerGemm & g) {
    const int64_t rows = std::max(kRows, kFewRows);
    return {size_t(rows * g.k), size_t(rows * g.k / kBlock), size_t(kDepth * kBlockColumns),
        size_t(kDepth / kBlock * kBlockColumns), size_t(kBlock * kBlockColumns)};
}

bool has_few_rows(const IntegerGemm & g, int64_t columns) {
    return !g.transposed && !g.accumulate && g.m <= kFewRows && columns % 8 == 0;
}

void multiply_few_rows(const IntegerGemm & g, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    run_few_q8_rows(g, j_begin, j_end, ws);
}

void round_rows(const IntegerGemm & g, int64_t begin, int64_t end, float * out, IntegerWorkspace & ws) {
    const auto round =
        !g.transposed && g.w_type == GGML_TYPE_Q8_0 ? round_row<Rounding::q8> : round_row<Rounding::fine>;
    const int64_t blocks = g.k / kBlock;
    for (int64_t i = begin; i < end; i += kRows) {
        // Rows past the end repeat the last row; their results are not stored.
        for (int64_t r = 0; r < kRows; r++)
            round(g.x + std::min(i + r, g.m - 1) * g.x_row, g.k, ws.row.data() + r * g.k,
                ws.row_scales.data() + r * blocks);
        float * const panel = out + i * rounded_size(g.k);
        pack_rows(
            ws.row.data(), ws.row_scales.data(), g.k, reinterpret_cast<int16_t *>(panel), panel + kRows * g.k / 2);
    }
}

void multiply_columns(
    const IntegerGemm & g, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    for (int64_t j0 = j_begin; j0 < j_end; j0 += kBlockColumns) {
        const int64_t width = std::min(kBlockColumns, j_end - j0);
        for (int64_t p0 = 0; p0 < g.k; p0 += kDepth) {
            const int64_t depth = std::min(kDepth, g.k - p0);
            pack_w(g, p0, depth, j0, width, ws);
            for (int64_t i = 0; i < g.m; i += kBlockRows)
                multiply_block(g, rounded, i, std::min(i + kBlockRows, g.m), p0, depth, j0, width, ws);
        }
    }
}

}  // namespace avx2

}  // namespace cria
