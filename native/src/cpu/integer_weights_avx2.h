// Lays out frozen weights as the tile of integer_gemm_avx2.cc reads them: panels of kColumns columns; for each block of
// 32 values along the sum 16 pairs of neighbours x columns, and a scale for each column. AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/integer_rows_avx2.h"

namespace cria::avx2 {

constexpr int kQ8Bytes = 34;

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

inline float read_q8_scale(const uint8_t * block) {
    uint16_t bits;
    std::memcpy(&bits, block, sizeof bits);
    return _cvtsh_ss(bits);
}

// A panel whose columns are rows of Q8_0 weights, `width` of them, followed by zeros.
inline void pack_q8_panel(
    const uint8_t * w, int64_t w_row, int64_t blocks, int64_t width, int16_t * out, float * scales) {
    static const uint8_t zeros[kQ8Bytes] = {};
    for (int64_t b = 0; b < blocks; b++, out += kBlock * kColumns, scales += kColumns) {
        const uint8_t * block[kColumns];
        for (int j = 0; j < kColumns; j++) {
            block[j] = j < width ? w + j * w_row + b * kQ8Bytes : zeros;
            // The next panel's: rows are read side by side, which hardware does not predict.
            _mm_prefetch(reinterpret_cast<const char *>(block[j] + kColumns * w_row), _MM_HINT_T0);
            scales[j] = read_q8_scale(block[j]);
        }
        for (int half = 0; half < 2; half++) {
            for (int j = 0; j < kColumns; j += 8) {
                __m256i r[8];
                for (int i = 0; i < 8; i++)
                    r[i] = _mm256_cvtepi8_epi16(
                        _mm_loadu_si128(reinterpret_cast<const __m128i *>(block[j + i] + 2 + 16 * half)));
                transpose_8x8(r);
                for (int i = 0; i < 8; i++)
                    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 2 * ((8 * half + i) * kColumns + j)), r[i]);
            }
        }
    }
}

// One block of a panel from 32 rows of weights as floats, kColumns of each.
inline void pack_float_block(const float * rows, int64_t row, int16_t * out, float * scales) {
    const __m256 sign = _mm256_set1_ps(-0.0f), limit = _mm256_set1_ps(kLimit);
    for (int j = 0; j < kColumns; j += 8) {
        __m256 most = _mm256_setzero_ps();
        for (int p = 0; p < kBlock; p++)
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, _mm256_loadu_ps(rows + p * row + j)));
        _mm256_storeu_ps(scales + j, _mm256_div_ps(most, limit));
        const __m256 inverse =
            _mm256_and_ps(_mm256_div_ps(limit, most), _mm256_cmp_ps(most, _mm256_set1_ps(kLeast), _CMP_GT_OQ));
        for (int p = 0; p < kBlock; p += 2) {
            const __m256i even = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(rows + p * row + j), inverse));
            const __m256i odd = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(rows + (p + 1) * row + j), inverse));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + p * kColumns + 2 * j),
                _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa));
        }
    }
}

}  // namespace cria::avx2
