// Lays out frozen weights as the tile of integer_gemm_kernel.h reads them: panels of kColumns columns. For each block
// of values along the sum: pairs of neighbours x columns; a scale for each column; and, of weights with minima, pairs
// of minima x columns, and their scale for each column. AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/integer_rows_avx2.h"

namespace cria::CRIA_INTEGER_UNIT {

// Eight rows of eight 32-bit elements become columns.
inline void transpose_8x8(__m256i r[8]) {
    __m256i t[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        r[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++) r[i] = t[i];
}

// Memory of a panel.
struct WeightPanel {
    int16_t * values;
    float * scales;
    int16_t * mins;
    float * min_scales;
};

// Columns behind the last of a panel read this instead.
constexpr uint8_t kZeros[256] = {};

// Columns are rows of W that are read side by side, which hardware does not predict: the next panel's are prefetched.
template <typename Block>
inline const uint8_t * find_block(const uint8_t * w, int64_t w_row, int64_t b, int64_t j, int64_t width) {
    const uint8_t * block = w + j * w_row + b * Block::kBytes;
    for (int byte = 0; byte < Block::kBytes; byte += 64)
        _mm_prefetch(reinterpret_cast<const char *>(block + kColumns * w_row + byte), _MM_HINT_T0);
    return j < width ? block : kZeros;
}

// 16 pairs of neighbours x eight columns.
inline void store_pairs(__m256i low[8], __m256i high[8], int16_t * out) {
    transpose_8x8(low);
    transpose_8x8(high);
    for (int i = 0; i < 8; i++) {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 2 * i * kColumns), low[i]);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 2 * (8 + i) * kColumns), high[i]);
    }
}

// The minimum of a small block, in column j: a pair of 1 and 0, which takes the sum of a row's pair, and its scale.
inline void read_minimum(const uint8_t * block, int j, const WeightPanel & out) {
    out.min_scales[j] = _cvtsh_ss(read_half(block + 2));
    out.mins[2 * j] = 1;
    out.mins[2 * j + 1] = 0;
}

// A panel whose columns are `width` rows of W.
template <ggml_type type>
inline void pack_panel(
    SmallBlock<type>, const uint8_t * w, int64_t w_row, int64_t blocks, int64_t width, WeightPanel out) {
    using Block = SmallBlock<type>;
    for (int64_t b = 0; b < blocks; b++, out.values += kSmallBlock * kColumns, out.scales += kColumns) {
        for (int j = 0; j < kColumns; j += 8) {
            __m256i low[8], high[8];
            for (int i = 0; i < 8; i++) {
                const uint8_t * block = find_block<Block>(w, w_row, b, j + i, width);
                const __m256i values = Block::read(block);
                low[i] = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(values));
                high[i] = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(values, 1));
                out.scales[j + i] = read_scale(Block{}, block);
                if (Block::kMins) read_minimum(block, j + i, out);
            }
            store_pairs(low, high, out.values + 2 * j);
        }
        if (Block::kMins) {
            out.mins += 2 * kColumns;
            out.min_scales += kColumns;
        }
    }
}

// out [256] = scale times value, which takes 13 bits and a sign at most.
template <typename Block, int s = 0>
inline void multiply_scales(const uint8_t * block, __m128i scales, int16_t * out) {
    if constexpr (s < 8) {
        const __m256i values = _mm256_sub_epi8(Block::template read<s>(block), _mm256_set1_epi8(char(Block::kOffset)));
        // The s-th scales stand behind each other, eight times each, as 16 bits.
        const __m256i each = spread_scales<s>(scales);
        const __m256i first = _mm256_permute4x64_epi64(each, 0x44), second = _mm256_permute4x64_epi64(each, 0xee);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 32 * s),
            _mm256_mullo_epi16(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(values)), first));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 32 * s + 16),
            _mm256_mullo_epi16(_mm256_cvtepi8_epi16(_mm256_extracti128_si256(values, 1)), second));
        multiply_scales<Block, s + 1>(block, scales, out);
    }
}

template <ggml_type type>
inline void pack_panel(
    LargeBlock<type>, const uint8_t * w, int64_t w_row, int64_t blocks, int64_t width, WeightPanel out) {
    using Block = LargeBlock<type>;
    for (int64_t b = 0; b < blocks; b++, out.values += kLargeBlock * kColumns, out.scales += kColumns) {
        for (int j = 0; j < kColumns; j += 8) {
            int16_t values[8][kLargeBlock];
            for (int i = 0; i < 8; i++) {
                const uint8_t * block = find_block<Block>(w, w_row, b, j + i, width);
                __m128i scales, mins;
                Block::read_scales(block, scales, mins);
                multiply_scales<Block>(block, scales, values[i]);
                out.scales[j + i] = _cvtsh_ss(read_half(block + Block::kScale));
                if (Block::kMins) {
                    int16_t eight[8];
                    _mm_storeu_si128(reinterpret_cast<__m128i *>(eight), mins);
                    for (int pair = 0; pair < 4; pair++)
                        std::memcpy(out.mins + 2 * (pair * kColumns + j + i), eight + 2 * pair, 2 * sizeof(int16_t));
                    out.min_scales[j + i] = -_cvtsh_ss(read_half(block + 2));
                }
            }
            for (int p = 0; p < kLargeBlock; p += kSmallBlock) {
                __m256i low[8], high[8];
                for (int i = 0; i < 8; i++) {
                    low[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values[i] + p));
                    high[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values[i] + p + 16));
                }
                store_pairs(low, high, out.values + p * kColumns + 2 * j);
            }
        }
        if (Block::kMins) {
            out.mins += 8 * kColumns;
            out.min_scales += kColumns;
        }
    }
}

// One block of a panel from 32 rows of weights as floats, kColumns of each.
inline void pack_float_block(const float * rows, int64_t row, int16_t * out, float * scales) {
    const __m256 sign = _mm256_set1_ps(-0.0f), limit = _mm256_set1_ps(kLimit);
    for (int j = 0; j < kColumns; j += 8) {
        __m256 most = _mm256_setzero_ps();
        for (int p = 0; p < kSmallBlock; p++)
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, _mm256_loadu_ps(rows + p * row + j)));
        _mm256_storeu_ps(scales + j, _mm256_div_ps(most, limit));
        const __m256 inverse =
            _mm256_and_ps(_mm256_div_ps(limit, most), _mm256_cmp_ps(most, _mm256_set1_ps(kLeast), _CMP_GT_OQ));
        for (int p = 0; p < kSmallBlock; p += 2) {
            const __m256i even = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(rows + p * row + j), inverse));
            const __m256i odd = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(rows + (p + 1) * row + j), inverse));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + p * kColumns + 2 * j),
                _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa));
        }
    }
}

}  // namespace cria::CRIA_INTEGER_UNIT
