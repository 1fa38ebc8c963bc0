// Products of a few rows with quantized weights as they are stored: packing them would cost more than it saves. Every
// sum of integers is exact, and blocks are added up in the order of run_tile: both give an element the same bits. AVX2,
// or VNNI.
#pragma once

#include "cpu/integer_gemm.h"
#include "cpu/integer_rows_avx2.h"
#include "cpu/integer_sums_avx2.h"
#include "cpu/integer_weights_avx2.h"

namespace cria::CRIA_INTEGER_UNIT {

// From more rows on, packing costs less than it saves: VNNI multiplies stored weights faster.
#ifdef __AVX512VNNI__
constexpr int kFewRows = 8;
#else
constexpr int kFewRows = 6;
#endif

// Rounded rows [M, k], in whichever form their blocks need.
struct FewRows {
    const int16_t * values;
    const int8_t * bytes;
    const int16_t * sums;  // of every 16 values
    const float * scales;  // [M, blocks]
};

// Sums each of the eight vectors; the sums are one vector.
inline __m256i add_across(const __m256i v[8]) {
    const __m256i front = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i back = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(front, back, 0x20), _mm256_permute2x128_si256(front, back, 0x31));
}

// F16 values of eight columns, which are rows of W.
inline __m256 read_halves(const uint8_t * w, int64_t w_row) {
    const auto at = [&](int j) { return short(read_half(w + j * w_row)); };
    return _mm256_cvtph_ps(_mm_set_epi16(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0)));
}

// The scales of eight columns' blocks.
template <ggml_type type>
inline __m256 read_scales(SmallBlock<type>, const uint8_t * w, int64_t w_row) {
    return read_halves(w, w_row);
}

inline __m256 read_scales(SmallBlock<GGML_TYPE_MXFP4> block, const uint8_t * w, int64_t w_row) {
    const auto at = [&](int j) { return read_scale(block, w + j * w_row); };
    return _mm256_set_ps(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
}

// sum += exact * (x_scale * w_scales)
inline void add_block(__m256i exact, float x_scale, __m256 w_scales, __m256 & sum) {
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), _mm256_mul_ps(_mm256_set1_ps(x_scale), w_scales), sum);
}

// The functions below: c [M, 8] = the product of M rows of X and eight rows of W. The eight rows behind are prefetched:
// rows are read side by side, which hardware does not predict. Short ones go to the first cache; long ones would
// displace there what is being read.

// Caches, as __builtin_prefetch numbers them.
constexpr int kFirst = 3, kSecond = 2;
constexpr int64_t kShortRows = 12 << 10;  // bytes of eight rows

template <int kCache>
inline const uint8_t * prefetch(const uint8_t * ahead, int bytes) {
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch(ahead + line, 0, kCache);
    return ahead + bytes;
}

template <int M, int kCache, ggml_type type>
void multiply_few(
    SmallBlock<type>, int64_t k, const FewRows & x, const uint8_t * w, int64_t w_row, float * c, int64_t c_row) {
    using Block = SmallBlock<type>;
    const int64_t blocks = k / kSmallBlock;
    __m256 sums[M] = {};
    const uint8_t * ahead = w + 8 * w_row;
    for (int64_t b = 0; b < blocks; b++, w += Block::kBytes) {
        ahead = prefetch<kCache>(ahead, 8 * Block::kBytes);
        __m256i products[M][8];
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            const __m256i values = Block::read(w + j * w_row);
#ifdef __AVX512VNNI__
            // Bytes without a sign: each is larger by 128.
            const __m256i larger = _mm256_xor_si256(values, _mm256_set1_epi8(-128));
#pragma GCC unroll 8
            for (int i = 0; i < M; i++) {
                const auto * in = reinterpret_cast<const __m256i *>(x.bytes + i * k + b * kSmallBlock);
                products[i][j] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), larger, _mm256_loadu_si256(in));
            }
#else
            const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(values)),
                          high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(values, 1));
#pragma GCC unroll 8
            for (int i = 0; i < M; i++) {
                const auto * in = reinterpret_cast<const __m256i *>(x.values + i * k + b * kSmallBlock);
                products[i][j] = _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_loadu_si256(in)),
                    _mm256_madd_epi16(high, _mm256_loadu_si256(in + 1)));
            }
#endif
        }
        const __m256 scales = read_scales(Block{}, w, w_row);
        for (int i = 0; i < M; i++) {
            const float x_scale = x.scales[i * blocks + b];
            const int16_t * parts = x.sums + (i * blocks + b) * 2;
            const int sum = parts[0] + parts[1];
            __m256i exact = add_across(products[i]);
#ifdef __AVX512VNNI__
            exact = _mm256_sub_epi32(exact, _mm256_set1_epi32(128 * sum));
#endif
            add_block(exact, x_scale, scales, sums[i]);
            if constexpr (Block::kMins) {
                add_block(_mm256_set1_epi32(sum), x_scale, read_halves(w + 2, w_row), sums[i]);
            }
        }
    }
    for (int i = 0; i < M; i++) _mm256_storeu_ps(c + i * c_row, sums[i]);
}

// exact[i] += the sum of scale * value * x over the block's values from the s-th 32 on.
template <int M, typename Block, int s = 0>
inline void add_products(const uint8_t * block, __m128i scales, const int8_t * x, int64_t k, __m256i (&exact)[M]) {
    if constexpr (s < 8) {
        const __m256i values = Block::template read<s>(block), each = spread_scales<s>(scales);
#pragma GCC unroll 8
        for (int i = 0; i < M; i++) {
            const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + i * k + 32 * s));
            exact[i] = add_pair_products(exact[i], _mm256_maddubs_epi16(values, in), each);
        }
        add_products<M, Block, s + 1>(block, scales, x, k, exact);
    }
}

template <int M, int kCache, ggml_type type>
void multiply_few(
    LargeBlock<type>, int64_t k, const FewRows & x, const uint8_t * w, int64_t w_row, float * c, int64_t c_row) {
    using Block = LargeBlock<type>;
    const int64_t blocks = k / kLargeBlock;
    __m256 sums[M] = {};
    const uint8_t * ahead = w + 8 * w_row;
    for (int64_t b = 0; b < blocks; b++, w += Block::kBytes) {
        ahead = prefetch<kCache>(ahead, 8 * Block::kBytes);
        __m256i products[M][8], minima[M][8];
        for (int j = 0; j < 8; j++) {
            const uint8_t * block = w + j * w_row;
            __m128i scales, mins;
            Block::read_scales(block, scales, mins);
            __m256i exact[M] = {};
            add_products<M, Block>(block, scales, x.bytes + b * kLargeBlock, k, exact);
            const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi16(mins, mins), _mm_unpacklo_epi16(mins, mins));
#pragma GCC unroll 8
            for (int i = 0; i < M; i++) {
                const __m256i in =
                    _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x.sums + (i * blocks + b) * 16));
                if constexpr (Block::kMins) minima[i][j] = _mm256_madd_epi16(both, in);
                if constexpr (Block::kOffset != 0) {
                    const __m256i offset = _mm256_madd_epi16(_mm256_cvtepi8_epi16(scales), in);
                    exact[i] =
                        _mm256_sub_epi32(exact[i], _mm256_mullo_epi32(offset, _mm256_set1_epi32(Block::kOffset)));
                }
                products[i][j] = exact[i];
            }
        }
        const __m256 scales = read_halves(w + Block::kScale, w_row);
        for (int i = 0; i < M; i++) {
            const float x_scale = x.scales[i * blocks + b];
            add_block(add_across(products[i]), x_scale, scales, sums[i]);
            if constexpr (Block::kMins) {
                const __m256 min_scales = _mm256_xor_ps(read_halves(w + 2, w_row), _mm256_set1_ps(-0.0f));
                add_block(add_across(minima[i]), x_scale, min_scales, sums[i]);
            }
        }
    }
    for (int i = 0; i < M; i++) _mm256_storeu_ps(c + i * c_row, sums[i]);
}

// Columns [j_begin, j_end), a multiple of eight.
template <int M, typename Block>
void multiply_few_columns(Block block, const IntegerGemm & g, const FewRows & x, int64_t j_begin, int64_t j_end) {
    const bool is_short = 8 * g.w_row <= kShortRows;
    for (int64_t j = j_begin; j < j_end; j += 8) {
        const uint8_t * w = static_cast<const uint8_t *>(g.w) + j * g.w_row;
        if (is_short) multiply_few<M, kFirst>(block, g.k, x, w, g.w_row, g.c + j, g.c_row);
        else multiply_few<M, kSecond>(block, g.k, x, w, g.w_row, g.c + j, g.c_row);
    }
}

inline FewRows round_few(const IntegerGemm & g, Rounding rounding, IntegerWorkspace & ws) {
    const int64_t blocks = g.k / block_of(rounding);
    for (int64_t i = 0; i < g.m; i++) {
        int16_t * row = ws.row.data() + i * g.k;
        float * scales = ws.row_scales.data() + i * blocks;
        if (rounding == Rounding::large) round_row<Rounding::large>(g.x + i * g.x_row, g.k, row, scales);
        else round_row<Rounding::small>(g.x + i * g.x_row, g.k, row, scales);
    }
    for (int64_t at = 0; at < g.m * g.k; at += 16) {
        const int16_t * values = ws.row.data() + at;
        ws.row_sums[size_t(at / 16)] = add_sixteen(values);
        const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(ws.row_bytes.data() + at),
            _mm_packs_epi16(_mm256_castsi256_si128(in), _mm256_extracti128_si256(in, 1)));
    }
    return {ws.row.data(), ws.row_bytes.data(), ws.row_sums.data(), ws.row_scales.data()};
}

template <typename Block>
inline void multiply_few_rows(Block block, const IntegerGemm & g, const FewRows & x, int64_t j_begin, int64_t j_end) {
    static_assert(kFewRows <= 8);
    switch (g.m) {
        case 1:
            return multiply_few_columns<1>(block, g, x, j_begin, j_end);
        case 2:
            return multiply_few_columns<2>(block, g, x, j_begin, j_end);
        case 3:
            return multiply_few_columns<3>(block, g, x, j_begin, j_end);
        case 4:
            return multiply_few_columns<4>(block, g, x, j_begin, j_end);
        case 5:
            return multiply_few_columns<5>(block, g, x, j_begin, j_end);
        case 6:
            return multiply_few_columns<6>(block, g, x, j_begin, j_end);
        case 7:
            return multiply_few_columns<7>(block, g, x, j_begin, j_end);
        default:
            return multiply_few_columns<8>(block, g, x, j_begin, j_end);
    }
}

}  // namespace cria::CRIA_INTEGER_UNIT
