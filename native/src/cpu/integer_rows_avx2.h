// Rounds rows of floats to integers in blocks, each with a scale, and lays them out as the tile reads them. AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <limits>

#include "cpu/quantized_blocks_avx2.h"

namespace cria::CRIA_INTEGER_UNIT {

constexpr int kRows = 4, kColumns = 16;
// 32 products of two such values fit into 31 bits.
constexpr float kLimit = 8190.0f;
// Blocks of smaller values become zeros: their inverse would overflow.
constexpr float kLeast = 1e-30f;

// Small: as ggml rounds to Q8_0, in blocks of 32 with a scale of max|x| / 127 in F16. Large: in blocks of 256 with a
// scale of max|x| / 127 in F32. Fine: 14 bits in blocks of 32, with a scale in F32.
enum class Rounding { small, large, fine };

constexpr int64_t block_of(Rounding rounding) { return rounding == Rounding::large ? kLargeBlock : kSmallBlock; }

// out, scales = a row of k values and a scale for each block. A block that is not finite gets a scale that is not a
// number.
template <Rounding rounding>
inline void round_row(const float * x, int64_t k, int16_t * out, float * scales) {
    constexpr int kBlock = int(block_of(rounding));
    constexpr float limit = rounding == Rounding::fine ? kLimit : 127.0f;
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t i = 0; i < k; i += kBlock) {
        __m256 most = _mm256_setzero_ps(), zero = _mm256_setzero_ps();
#pragma GCC unroll 4
        for (int j = 0; j < kBlock; j += 8) {
            const __m256 v = _mm256_loadu_ps(x + i + j);
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, v));
            zero = _mm256_fmadd_ps(v, _mm256_setzero_ps(), zero);
        }
        __m128 half = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
        half = _mm_max_ps(half, _mm_movehl_ps(half, half));
        const float max = _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
        const bool finite = _mm256_movemask_ps(_mm256_cmp_ps(zero, zero, _CMP_UNORD_Q)) == 0;
        const float scale =
            rounding == Rounding::small ? _cvtsh_ss(_cvtss_sh(max / limit, _MM_FROUND_TO_NEAREST_INT)) : max / limit;
        *scales++ = finite ? scale : std::numeric_limits<float>::quiet_NaN();
        const __m256 inverse = _mm256_set1_ps(max > kLeast ? limit / max : 0.0f);
#pragma GCC unroll 2
        for (int j = 0; j < kBlock; j += 16) {
            const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + j), inverse)),
                          b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + j + 8), inverse));
            // packs works within 128-bit lanes; the permutation puts the four quarters in order.
            const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + i + j), packed);
        }
    }
}

// The sum of 16 values.
inline int16_t add_sixteen(const int16_t * values) {
    const __m256i pairs =
        _mm256_madd_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(values)), _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return int16_t(_mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 1));
}

// A rounded panel of X: values, [kRows, k / 32] scales at most, and as many pairs of sums at most. Where values are
// bytes they leave room for an offset of each sum.
struct RoundedPanel {
    float * values;
    int64_t k;
    int32_t * offsets() const { return reinterpret_cast<int32_t *>(values + kRows * k / 4); }
    float * scales() const { return values + kRows * k / 2; }
    int16_t * sums() const { return reinterpret_cast<int16_t *>(scales() + kRows * k / kSmallBlock); }
};

// A panel of X, from a block on. Offsets only of bytes.
struct RowPanel {
    const int16_t * values;
    const float * scales;
    const int16_t * sums;
    const int32_t * offsets;
};

// Four 32-bit elements of each row, stored element by element for all rows.
inline void store_by_columns(const __m128i (&r)[kRows], void * out) {
    const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpacklo_epi32(r[2], r[3]),
                  c = _mm_unpackhi_epi32(r[0], r[1]), d = _mm_unpackhi_epi32(r[2], r[3]);
    __m128i * const to = static_cast<__m128i *>(out);
    _mm_storeu_si128(to, _mm_unpacklo_epi64(a, b));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi64(a, b));
    _mm_storeu_si128(to + 2, _mm_unpacklo_epi64(c, d));
    _mm_storeu_si128(to + 3, _mm_unpackhi_epi64(c, d));
}

// Lays out a panel of kRows rows [kRows, k] of X as the tile reads them: pairs of neighbouring values x rows.
inline void pack_pair_rows(const int16_t * rows, int64_t k, int16_t * out) {
    for (int64_t p = 0; p < k; p += 8, out += 8 * kRows) {
        __m128i r[kRows];
        for (int i = 0; i < kRows; i++) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(rows + i * k + p));
        store_by_columns(r, out);
    }
}

// For each block of a panel a scale for each row, from [kRows, blocks]; and, for weights with minima, the sum of every
// 32 values: in small blocks pairs of it and 0 x rows, in large ones four pairs x rows.
inline void pack_scales(
    Rounding rounding, const int16_t * rows, const float * rows_scales, int64_t k, float * scales, int16_t * sums) {
    const int64_t blocks = k / block_of(rounding);
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < kRows; i++) scales[b * kRows + i] = rows_scales[i * blocks + b];
    }
    if (rounding == Rounding::fine) return;
    const int64_t pair = rounding == Rounding::large ? 2 : 1;
    for (int64_t at = 0; at < k / kSmallBlock; at += pair) {
        for (int i = 0; i < kRows; i++, sums += 2) {
            const int16_t * values = rows + i * k + at * kSmallBlock;
            sums[0] = int16_t(add_sixteen(values) + add_sixteen(values + 16));
            sums[1] = pair == 1 ? int16_t(0) : int16_t(add_sixteen(values + 32) + add_sixteen(values + 48));
        }
    }
}

}  // namespace cria::CRIA_INTEGER_UNIT
