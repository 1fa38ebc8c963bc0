// Rounds rows of floats to integers in blocks of 32, each with a scale, and lays them out as the tile reads them. AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <limits>

namespace cria::avx2 {

constexpr int kRows = 4, kColumns = 16, kBlock = 32;
// 32 products of two such values fit into 31 bits.
constexpr float kLimit = 8190.0f;
// Blocks of smaller values become zeros: their inverse would overflow.
constexpr float kLeast = 1e-30f;

enum class Rounding { q8, fine };

// out, scales = a row of k values: 14 bits and a scale in F32, or as ggml rounds to Q8_0: scale = max|x| / 127 in F16.
// A block that is not finite gets a scale that is not a number.
template <Rounding rounding>
inline void round_row(const float * x, int64_t k, int16_t * out, float * scales) {
    constexpr float limit = rounding == Rounding::q8 ? 127.0f : kLimit;
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t i = 0; i < k; i += kBlock) {
        __m256 v[4], most = _mm256_setzero_ps(), zero = _mm256_setzero_ps();
        for (int j = 0; j < 4; j++) {
            v[j] = _mm256_loadu_ps(x + i + 8 * j);
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, v[j]));
            zero = _mm256_fmadd_ps(v[j], _mm256_setzero_ps(), zero);
        }
        __m128 half = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
        half = _mm_max_ps(half, _mm_movehl_ps(half, half));
        const float max = _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
        const bool finite = _mm256_movemask_ps(_mm256_cmp_ps(zero, zero, _CMP_UNORD_Q)) == 0;
        const float scale =
            rounding == Rounding::q8 ? _cvtsh_ss(_cvtss_sh(max / limit, _MM_FROUND_TO_NEAREST_INT)) : max / limit;
        *scales++ = finite ? scale : std::numeric_limits<float>::quiet_NaN();
        const __m256 inverse = _mm256_set1_ps(max > kLeast ? limit / max : 0.0f);
        for (int j = 0; j < 4; j += 2) {
            const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(v[j], inverse)),
                          b = _mm256_cvtps_epi32(_mm256_mul_ps(v[j + 1], inverse));
            // packs works within 128-bit lanes; the permutation puts the four quarters in order.
            const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + i + 8 * j), packed);
        }
    }
}

// Lays out a panel of kRows rows of X as the tile reads them: for each block, 16 pairs of neighbouring values x rows,
// and a scale for each row. `rows` is intermediate memory: [kRows, k], and its scales [kRows, k / kBlock].
inline void pack_rows(const int16_t * rows, const float * rows_scales, int64_t k, int16_t * out, float * scales) {
    const int64_t blocks = k / kBlock;
    for (int64_t p = 0; p < k; p += 8, out += 8 * kRows) {
        __m128i r[kRows];
        for (int i = 0; i < kRows; i++) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(rows + i * k + p));
        const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpacklo_epi32(r[2], r[3]),
                      c = _mm_unpackhi_epi32(r[0], r[1]), d = _mm_unpackhi_epi32(r[2], r[3]);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_unpacklo_epi64(a, b));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 8), _mm_unpackhi_epi64(a, b));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 16), _mm_unpacklo_epi64(c, d));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 24), _mm_unpackhi_epi64(c, d));
    }
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < kRows; i++) scales[b * kRows + i] = rows_scales[i * blocks + b];
    }
}

}  // namespace cria::avx2
