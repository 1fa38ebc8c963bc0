// The products of integer_gemm.h, written once and compiled once for each instruction set that integer_kernel.h lists.
// The including file defines CRIA_INTEGER_UNIT, the namespace of the kernel and of the headers below.
#include <algorithm>

#include "cpu/few_rows_avx2.h"
#include "cpu/gemm.h"
#include "cpu/integer_kernel.h"
#include "cpu/integer_rows_avx2.h"
#include "cpu/integer_sums_avx2.h"
#include "cpu/integer_weights_avx2.h"
#ifdef __AVX512VNNI__
#include "cpu/integer_wide_vnni.h"
#endif

namespace cria::CRIA_INTEGER_UNIT {

namespace {

// Deep, so that few sums go to memory and back: a panel of W takes 20 KiB of the first-level cache. kBlockColumns is a
// multiple of every quantization block.
constexpr int64_t kBlockRows = 48, kBlockColumns = 256;
constexpr int64_t depth_of(Rounding rounding) { return rounding == Rounding::large ? 512 : 640; }
constexpr int64_t kMostDepth = 640;

Rounding rounding_of(const IntegerGemm & g) {
    if (g.transposed) return Rounding::fine;
    return ggml_blck_size(g.w_type) == kLargeBlock ? Rounding::large : Rounding::small;
}

// The panel of rows from i on, from value p0 on.
template <bool kBytes>
RowPanel find_rows(const IntegerGemm & g, const float * rounded, int64_t i, int64_t p0) {
    const Rounding rounding = rounding_of(g);
    const int64_t block = p0 / block_of(rounding), pairs = rounding == Rounding::large ? 4 : 1;
    const RoundedPanel panel{const_cast<float *>(rounded) + i * rounded_size(g.k), g.k};
    return {reinterpret_cast<const int16_t *>(panel.values) + p0 * kRows / (kBytes ? 2 : 1),
        panel.scales() + block * kRows, panel.sums() + 2 * block * pairs * kRows, panel.offsets() + block * kRows};
}

// The panel of columns from j on that pack_w left in the workspace.
template <int kPairs, int kMinPairs>
WeightPanel find_panel(IntegerWorkspace & ws, int64_t j, int64_t blocks) {
    return {ws.w.data() + j * blocks * 2 * kPairs, ws.w_scales.data() + j * blocks,
        ws.w_mins.data() + j * blocks * 2 * kMinPairs, ws.min_scales.data() + j * blocks};
}

#ifndef __AVX512VNNI__
// sums [kRows][2] += `count` pairs of a block of X times those of W.
template <int count>
inline void add_pairs(const int16_t * x, const int16_t * w, __m256i (&sums)[kRows][2]) {
#pragma GCC unroll 16
    for (int p = 0; p < count; p++) {
        const __m256i w0 = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(w + 2 * p * kColumns));
        const __m256i w1 = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(w + (2 * p + 1) * kColumns));
#pragma GCC unroll 4
        for (int i = 0; i < kRows; i++) {
            int32_t pair;
            std::memcpy(&pair, x + 2 * (p * kRows + i), sizeof pair);
            const __m256i both = _mm256_set1_epi32(pair);
            sums[i][0] = add_pair_products(sums[i][0], w0, both);
            sums[i][1] = add_pair_products(sums[i][1], w1, both);
            // Emits no instruction. Without it the compiler adds the products up as a tree, and runs out of registers.
            asm("" : "+x"(sums[i][0]), "+x"(sums[i][1]));
        }
    }
}

// out [kRows, kColumns] (+)= exact * (x_scales * w_scales), as add_block() does.
inline void scale_sums(const __m256i (&exact)[kRows][2], const float * x_scales, const float * w_scales, float * c,
    int64_t c_row, bool accumulate) {
    const __m256 s0 = _mm256_loadu_ps(w_scales), s1 = _mm256_loadu_ps(w_scales + 8);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; i++) {
        float * out = c + i * c_row;
        __m256 sum0 = accumulate ? _mm256_loadu_ps(out) : _mm256_setzero_ps(),
               sum1 = accumulate ? _mm256_loadu_ps(out + 8) : _mm256_setzero_ps();
        add_block(exact[i][0], x_scales[i], s0, sum0);
        add_block(exact[i][1], x_scales[i], s1, sum1);
        _mm256_storeu_ps(out, sum0);
        _mm256_storeu_ps(out + 8, sum1);
    }
}

// c [kRows, kColumns] (+)= the product of a panel of X and one of W, whose blocks have kPairs pairs of values and
// kMinPairs of minima.
template <int kPairs, int kMinPairs>
void run_tile(int64_t blocks, RowPanel x, WeightPanel w, float * c, int64_t c_row, bool accumulate) {
    for (int64_t b = 0; b < blocks; b++) {
        __m256i exact[kRows][2] = {};
        add_pairs<kPairs>(x.values, w.values, exact);
        scale_sums(exact, x.scales, w.scales, c, c_row, accumulate);
        accumulate = true;
        if constexpr (kMinPairs > 0) {
            __m256i minima[kRows][2] = {};
            add_pairs<kMinPairs>(x.sums, w.mins, minima);
            scale_sums(minima, x.scales, w.min_scales, c, c_row, true);
            x.sums += 2 * kMinPairs * kRows;
            w.mins += 2 * kMinPairs * kColumns;
            w.min_scales += kColumns;
        }
        x.values += 2 * kPairs * kRows;
        x.scales += kRows;
        w.values += 2 * kPairs * kColumns;
        w.scales += kColumns;
    }
}
#endif

// Packs columns [j0, j0 + width) of [p0, p0 + depth) of W^T into the workspace.
void pack_transposed(
    const IntegerGemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, IntegerWorkspace & ws) {
    const int64_t blocks = depth / kSmallBlock;
    const char * w = static_cast<const char *>(g.w) + p0 * g.w_row + ggml_row_size(g.w_type, j0);
    // Columns behind the last are packed and multiplied too, but not stored.
    const int64_t bytes = int64_t(ggml_row_size(g.w_type, width));
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t p = 0; p < kSmallBlock; p++, w += g.w_row) {
            // Rows are far apart, so no hardware prefetcher predicts them.
            for (int64_t byte = 0; byte < bytes; byte += 64) _mm_prefetch(w + 16 * g.w_row + byte, _MM_HINT_T0);
            dequantize_row(g.w_type, w, ws.floats.data() + p * kBlockColumns, width);
        }
        for (int64_t j = 0; j < width; j += kColumns) {
            pack_float_block(ws.floats.data() + j, kBlockColumns, ws.w.data() + j * depth + b * kSmallBlock * kColumns,
                ws.w_scales.data() + j * blocks + b * kColumns);
        }
    }
}

// The tile of blocks with kPairs pairs of values and kMinPairs of minima; kBytes: values are bytes.
template <int pairs, int min_pairs, bool kBytes = false>
struct Tile {
    static constexpr int kPairs = pairs, kMinPairs = min_pairs;
    static constexpr bool kHasBytes = kBytes;
#ifdef __AVX512VNNI__
    static constexpr int kTileRows = 2 * kRows;
#else
    static constexpr int kTileRows = kRows;
#endif
    // Rows from i on, at most kTileRows: as many as are there, in whole panels.
    static void run(const IntegerGemm & g, const float * rounded, int64_t i, int64_t p0, int64_t rows, int64_t blocks,
        WeightPanel w, float * c, int64_t c_row, bool accumulate) {
        const RowPanel first = find_rows<kBytes>(g, rounded, i, p0);
#ifdef __AVX512VNNI__
        if (rows > kRows) {
            const RowPanel second = find_rows<kBytes>(g, rounded, i + kRows, p0);
            run_wide_tile<2, pairs, min_pairs, kBytes>(blocks, {first, second}, w, c, c_row, accumulate);
        } else {
            run_wide_tile<1, pairs, min_pairs, kBytes>(blocks, {first, {}}, w, c, c_row, accumulate);
        }
#else
        static_cast<void>(rows);
        run_tile<pairs, min_pairs>(blocks, first, w, c, c_row, accumulate);
#endif
    }
};

// Multiplies rows [i_begin, i_end) by the weights that were packed into the workspace.
template <typename T>
void multiply_block(const IntegerGemm & g, const float * rounded, int64_t i_begin, int64_t i_end, int64_t p0,
    int64_t depth, int64_t j0, int64_t width, IntegerWorkspace & ws) {
    const int64_t blocks = depth / (2 * T::kPairs);
    const bool accumulate = g.accumulate || p0 > 0;
    for (int64_t j = 0; j < width; j += kColumns) {
        const WeightPanel w = find_panel<T::kPairs, T::kMinPairs>(ws, j, blocks);
        for (int64_t i = i_begin; i < i_end; i += T::kTileRows) {
            const int64_t full_rows = std::min<int64_t>(T::kTileRows, i_end - i),
                          full_columns = std::min<int64_t>(kColumns, width - j);
            float * c = g.c + i * g.c_row + j0 + j;
            if (full_rows == T::kTileRows && full_columns == kColumns) {
                for (int r = 0; r < T::kTileRows; r++)
                    _mm_prefetch(reinterpret_cast<const char *>(c + r * g.c_row), _MM_HINT_T0);
                T::run(g, rounded, i, p0, full_rows, blocks, w, c, g.c_row, accumulate);
                continue;
            }
            float tile[T::kTileRows * kColumns];
            for (int64_t r = 0; accumulate && r < full_rows; r++)
                std::memcpy(tile + r * kColumns, c + r * g.c_row, size_t(full_columns) * sizeof(float));
            T::run(g, rounded, i, p0, full_rows, blocks, w, tile, kColumns, accumulate);
            for (int64_t r = 0; r < full_rows; r++)
                std::memcpy(c + r * g.c_row, tile + r * kColumns, size_t(full_columns) * sizeof(float));
        }
    }
}

// Columns [j_begin, j_end) by blocks that pack(p0, depth, j0, width) packs into the workspace.
template <typename T, typename Pack>
void multiply_blocks(const IntegerGemm & g, const float * rounded, int64_t j_begin, int64_t j_end, const Pack & pack,
    IntegerWorkspace & ws) {
    const int64_t most = depth_of(rounding_of(g));
    for (int64_t j0 = j_begin; j0 < j_end; j0 += kBlockColumns) {
        const int64_t width = std::min(kBlockColumns, j_end - j0);
        for (int64_t p0 = 0; p0 < g.k; p0 += most) {
            const int64_t depth = std::min(most, g.k - p0);
            pack(p0, depth, j0, width);
            for (int64_t i = 0; i < g.m; i += kBlockRows)
                multiply_block<T>(g, rounded, i, std::min(i + kBlockRows, g.m), p0, depth, j0, width, ws);
        }
    }
}

// The tile of a type's blocks.
template <ggml_type type>
constexpr auto tile_of(SmallBlock<type>) {
#ifdef __AVX512VNNI__
    constexpr bool bytes = true;
#else
    constexpr bool bytes = false;
#endif
    return Tile<kSmallBlock / 2, SmallBlock<type>::kMins ? 1 : 0, bytes>{};
}
template <ggml_type type>
constexpr auto tile_of(LargeBlock<type>) {
    return Tile<kLargeBlock / 2, LargeBlock<type>::kMins ? 4 : 0>{};
}

// Columns of W as it is stored.
template <typename Block>
void multiply_stored(
    Block block, const IntegerGemm & g, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    using T = decltype(tile_of(block));
    const auto pack = [&](int64_t p0, int64_t depth, int64_t j0, int64_t width) {
        const int64_t blocks = depth / (2 * T::kPairs);
        for (int64_t j = 0; j < width; j += kColumns) {
            const uint8_t * w =
                static_cast<const uint8_t *>(g.w) + (j0 + j) * g.w_row + p0 / (2 * T::kPairs) * Block::kBytes;
            const int64_t columns = std::min<int64_t>(kColumns, width - j);
            const WeightPanel panel = find_panel<T::kPairs, T::kMinPairs>(ws, j, blocks);
            if constexpr (T::kHasBytes) pack_byte_panel(block, w, g.w_row, blocks, columns, panel);
            else pack_panel(block, w, g.w_row, blocks, columns, panel);
        }
    };
    multiply_blocks<T>(g, rounded, j_begin, j_end, pack, ws);
}

bool has_blocks(ggml_type type) {
    bool found = false;
    with_blocks(type, [&](auto) { found = true; });
    return found;
}

WorkspaceSizes workspace_sizes(const IntegerGemm & g) {
    const int64_t rows = std::max(kRows, kFewRows), blocks = kMostDepth / kSmallBlock * kBlockColumns;
    return {size_t(rows * g.k), size_t(rows * g.k / kSmallBlock), size_t(rows * g.k / 16),
        size_t(kMostDepth * kBlockColumns), size_t(blocks), size_t(2 * blocks), size_t(kSmallBlock * kBlockColumns)};
}

bool has_few_rows(const IntegerGemm & g, int64_t columns) {
    return !g.transposed && !g.accumulate && g.m <= kFewRows && columns % 8 == 0;
}

void multiply_few_rows(const IntegerGemm & g, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    const FewRows x = round_few(g, rounding_of(g), ws);
    with_blocks(g.w_type, [&](auto block) { multiply_few_rows(block, g, x, j_begin, j_end); });
}

void round_rows(const IntegerGemm & g, int64_t begin, int64_t end, float * out, IntegerWorkspace & ws) {
    const Rounding rounding = rounding_of(g);
    const auto round = rounding == Rounding::small   ? round_row<Rounding::small>
                       : rounding == Rounding::large ? round_row<Rounding::large>
                                                     : round_row<Rounding::fine>;
    const int64_t blocks = g.k / block_of(rounding);
    for (int64_t i = begin; i < end; i += kRows) {
        // Rows past the end repeat the last row; their results are not stored.
        for (int64_t r = 0; r < kRows; r++)
            round(g.x + std::min(i + r, g.m - 1) * g.x_row, g.k, ws.row.data() + r * g.k,
                ws.row_scales.data() + r * blocks);
        const RoundedPanel panel{out + i * rounded_size(g.k), g.k};
        pack_scales(rounding, ws.row.data(), ws.row_scales.data(), g.k, panel.scales(), panel.sums());
#ifdef __AVX512VNNI__
        if (rounding == Rounding::small) {
            pack_byte_rows(ws.row.data(), g.k, panel.sums(), reinterpret_cast<int8_t *>(panel.values), panel.offsets());
            continue;
        }
#endif
        pack_pair_rows(ws.row.data(), g.k, reinterpret_cast<int16_t *>(panel.values));
    }
}

void multiply_columns(
    const IntegerGemm & g, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    if (!g.transposed)
        return with_blocks(g.w_type, [&](auto block) { multiply_stored(block, g, rounded, j_begin, j_end, ws); });
    const auto pack = [&](int64_t p0, int64_t depth, int64_t j0, int64_t width) {
        pack_transposed(g, p0, depth, j0, width, ws);
    };
    multiply_blocks<Tile<kSmallBlock / 2, 0>>(g, rounded, j_begin, j_end, pack, ws);
}

}  // namespace

const IntegerKernel integer_kernel = {
    workspace_sizes, has_blocks, has_few_rows, multiply_few_rows, round_rows, multiply_columns};

}  // namespace cria::CRIA_INTEGER_UNIT
