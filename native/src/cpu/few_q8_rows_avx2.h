// Products of a few rows with Q8_0 weights as they are stored: packing them would cost more than it saves. AVX2.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cpu/integer_gemm.h"
#include "cpu/integer_rows_avx2.h"
#include "cpu/integer_weights_avx2.h"

namespace cria::avx2 {

constexpr int kFewRows = 6;
// Caches, as __builtin_prefetch numbers them.
constexpr int kFirst = 3, kSecond = 2;

// Sums each of the eight vectors; the sums are one vector.
inline __m256i add_across(const __m256i v[8]) {
    const __m256i front = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i back = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(front, back, 0x20), _mm256_permute2x128_si256(front, back, 0x31));
}

// c [M, 8] = the product of M rows of X and eight rows of W. Blocks are added up in the order of run_tile. The eight
// rows behind are prefetched: rows are read side by side, which hardware does not predict. Short ones go to the first
// cache; long ones would displace there what is being read.
template <int M, int kCache>
void run_few_rows(int64_t blocks, const int16_t * x, const float * x_scales, const uint8_t * w, int64_t w_row,
    float * c, int64_t c_row) {
    __m256 sums[M] = {};
    const uint8_t * ahead = w + 8 * w_row;
    for (int64_t b = 0; b < blocks; b++, w += kQ8Bytes) {
        __m256i products[M][8];
        __m128i bits = _mm_setzero_si128();
        const auto take = [&](auto index) __attribute__((always_inline)) {
            constexpr int j = decltype(index)::value;
            const uint8_t * block = w + j * w_row;
            uint16_t scale;
            std::memcpy(&scale, block, sizeof scale);
            bits = _mm_insert_epi16(bits, scale, j);
            const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 2)));
            const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 18)));
            for (int i = 0; i < M; i++) {
                const auto * in = reinterpret_cast<const __m256i *>(x + (i * blocks + b) * kBlock);
                products[i][j] = _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_loadu_si256(in)),
                    _mm256_madd_epi16(high, _mm256_loadu_si256(in + 1)));
            }
        };
        for (const uint8_t * line = ahead; line < ahead + 8 * kQ8Bytes; line += 64) __builtin_prefetch(line, 0, kCache);
        ahead += 8 * kQ8Bytes;
        take(std::integral_constant<int, 0>{});
        take(std::integral_constant<int, 1>{});
        take(std::integral_constant<int, 2>{});
        take(std::integral_constant<int, 3>{});
        take(std::integral_constant<int, 4>{});
        take(std::integral_constant<int, 5>{});
        take(std::integral_constant<int, 6>{});
        take(std::integral_constant<int, 7>{});
        const __m256 scales = _mm256_cvtph_ps(bits);
        for (int i = 0; i < M; i++) {
            const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(x_scales[i * blocks + b]), scales);
            sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(add_across(products[i])), scale, sums[i]);
        }
    }
    for (int i = 0; i < M; i++) _mm256_storeu_ps(c + i * c_row, sums[i]);
}

using FewRows = decltype(&run_few_rows<1, kFirst>);
template <int kCache>
constexpr FewRows few_rows[kFewRows] = {run_few_rows<1, kCache>, run_few_rows<2, kCache>, run_few_rows<3, kCache>,
    run_few_rows<4, kCache>, run_few_rows<5, kCache>, run_few_rows<6, kCache>};
constexpr int64_t kShortRows = 12 << 10;  // bytes of eight rows

// All rows, at most kFewRows, by columns [j_begin, j_end), a multiple of eight.
inline void run_few_q8_rows(const IntegerGemm & g, int64_t j_begin, int64_t j_end, IntegerWorkspace & ws) {
    const int64_t blocks = g.k / kBlock;
    for (int64_t i = 0; i < g.m; i++)
        round_row<Rounding::q8>(g.x + i * g.x_row, g.k, ws.row.data() + i * g.k, ws.row_scales.data() + i * blocks);
    const FewRows run = (8 * g.w_row <= kShortRows ? few_rows<kFirst> : few_rows<kSecond>)[g.m - 1];
    for (int64_t j = j_begin; j < j_end; j += 8) {
        const uint8_t * w = static_cast<const uint8_t *>(g.w) + j * g.w_row;
        run(blocks, ws.row.data(), ws.row_scales.data(), w, g.w_row, g.c + j, g.c_row);
    }
}

}  // namespace cria::avx2
