// The tile of integer_gemm_kernel.h in registers of 512 bits. Rows and weights in small blocks are bytes: their
// products take half of the instructions that 16-bit values take. Sums of a block are as exact, so that bits are those
// of the other tile. AVX-512 with VNNI.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/integer_rows_avx2.h"
#include "cpu/integer_weights_avx2.h"

namespace cria::CRIA_INTEGER_UNIT {

// VNNI multiplies bytes without a sign by bytes with one: weights are stored larger by this.
constexpr int kByteOffset = 128;

// Lays out a panel of kRows rounded rows: fours of neighbouring values x rows; offsets: what each row's sums of a block
// begin with, because weights are larger. Scales and sums are as pack_scales() writes them.
inline void pack_byte_rows(const int16_t * rows, int64_t k, const int16_t * sums, int8_t * out, int32_t * offsets) {
    for (int64_t p = 0; p < k; p += 16, out += 16 * kRows) {
        __m128i r[kRows];
        for (int i = 0; i < kRows; i++) {
            const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(rows + i * k + p));
            r[i] = _mm_packs_epi16(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
        }
        store_by_columns(r, out);
    }
    for (int64_t at = 0; at < k / kSmallBlock * kRows; at++) offsets[at] = -kByteOffset * sums[2 * at];
}

// As pack_panel(), but for fours of neighbouring values x columns.
template <ggml_type type>
inline void pack_byte_panel(
    SmallBlock<type>, const uint8_t * w, int64_t w_row, int64_t blocks, int64_t width, WeightPanel out) {
    using Block = SmallBlock<type>;
    uint8_t * values = reinterpret_cast<uint8_t *>(out.values);
    const __m256i larger = _mm256_set1_epi8(char(kByteOffset));
    for (int64_t b = 0; b < blocks; b++, values += kSmallBlock * kColumns, out.scales += kColumns) {
        for (int j = 0; j < kColumns; j += 8) {
            __m256i columns[8];
            for (int i = 0; i < 8; i++) {
                const uint8_t * block = find_block<Block>(w, w_row, b, j + i, width);
                columns[i] = _mm256_xor_si256(Block::read(block), larger);
                out.scales[j + i] = read_scale(Block{}, block);
                if (Block::kMins) read_minimum(block, j + i, out);
            }
            transpose_8x8(columns);
            for (int i = 0; i < 8; i++)
                _mm256_storeu_si256(reinterpret_cast<__m256i *>(values + 4 * (i * kColumns + j)), columns[i]);
        }
        if (Block::kMins) {
            out.mins += 2 * kColumns;
            out.min_scales += kColumns;
        }
    }
}

// sum += exact * (x_scale * w_scales), as add_block() does.
inline void add_wide_block(__m512i exact, float x_scale, __m512 w_scales, __m512 & sum) {
    // GCC 12 warns of its own intrinsic.
    const __m512 sums = __m512(__builtin_convertvector(__v16si(exact), __v16sf));
    sum = _mm512_fmadd_ps(sums, _mm512_mul_ps(_mm512_set1_ps(x_scale), w_scales), sum);
}

// The 32 bits at `place`: a pair of 16-bit values, or four bytes.
inline __m512i spread_values(const void * place) {
    int32_t values;
    std::memcpy(&values, place, sizeof values);
    return _mm512_set1_epi32(values);
}

// c [kPanels * kRows, kColumns] (+)= the product of panels of rows and one of W, whose blocks have kPairs pairs of
// values and kMinPairs of minima.
template <int kPanels, int kPairs, int kMinPairs, bool kBytes>
void run_wide_tile(int64_t blocks, const RowPanel (&x)[2], WeightPanel w, float * c, int64_t c_row, bool accumulate) {
    constexpr int rows = kPanels * kRows, steps = kBytes ? kPairs / 2 : kPairs;
    __m512 sums[rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) sums[i] = accumulate ? _mm512_loadu_ps(c + i * c_row) : _mm512_setzero_ps();
    const auto * values = reinterpret_cast<const char *>(w.values);
    for (int64_t b = 0; b < blocks; b++) {
        __m512i exact[rows];
        const auto add = [&](const __m512 scales) {
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                add_wide_block(exact[i], x[i / kRows].scales[b * kRows + i % kRows], scales, sums[i]);
        };
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            exact[i] = kBytes ? _mm512_set1_epi32(x[i / kRows].offsets[b * kRows + i % kRows]) : _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int p = 0; p < steps; p++, values += 4 * kColumns) {
            const __m512i column = _mm512_loadu_si512(values);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                const auto * in = reinterpret_cast<const char *>(x[i / kRows].values);
                const __m512i both = spread_values(in + 4 * ((b * steps + p) * kRows + i % kRows));
                exact[i] =
                    kBytes ? _mm512_dpbusd_epi32(exact[i], column, both) : _mm512_dpwssd_epi32(exact[i], column, both);
            }
        }
        add(_mm512_loadu_ps(w.scales + b * kColumns));
        if constexpr (kMinPairs > 0) {
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) exact[i] = _mm512_setzero_si512();
#pragma GCC unroll 4
            for (int p = 0; p < kMinPairs; p++, w.mins += 2 * kColumns) {
                const __m512i column = _mm512_loadu_si512(w.mins);
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++) {
                    const int16_t * in = x[i / kRows].sums + 2 * ((b * kMinPairs + p) * kRows + i % kRows);
                    exact[i] = _mm512_dpwssd_epi32(exact[i], column, spread_values(in));
                }
            }
            add(_mm512_loadu_ps(w.min_scales + b * kColumns));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) _mm512_storeu_ps(c + i * c_row, sums[i]);
}

}  // namespace cria::CRIA_INTEGER_UNIT
