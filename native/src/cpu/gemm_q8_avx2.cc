#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/gemm_q8.h"

namespace cria {

namespace {

constexpr int kRows = 4, kColumns = 16, kBlock = 32, kBlockBytes = 34;
// Up to so many rows, packing W costs more than it saves.
constexpr int kFewRows = 6;
// Deep, so that few sums go to memory and back: a panel of W takes 20 KiB of the first cache.
constexpr int64_t kDepth = 640, kBlockRows = 48, kBlockColumns = 256;

float read_scale(const uint8_t * block) {
    uint16_t bits;
    std::memcpy(&bits, block, sizeof bits);
    return _cvtsh_ss(bits);
}

// One row of X as ggml rounds it: scale = max|x| / 127 in F16, quotients to the nearest integer.
void quantize_row(const float * x, int64_t k, int16_t * out, float * scales) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t i = 0; i < k; i += kBlock) {
        __m256 v[4], most = _mm256_setzero_ps();
        for (int j = 0; j < 4; j++) {
            v[j] = _mm256_loadu_ps(x + i + 8 * j);
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, v[j]));
        }
        __m128 half = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
        half = _mm_max_ps(half, _mm_movehl_ps(half, half));
        const float max = _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
        *scales++ = _cvtsh_ss(_cvtss_sh(max / 127.0f, _MM_FROUND_TO_NEAREST_INT));
        const __m256 inverse = _mm256_set1_ps(max != 0.0f ? 127.0f / max : 0.0f);
        for (int j = 0; j < 4; j += 2) {
            const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(v[j], inverse)), b = _mm256_cvtps_epi32(_mm256_mul_ps(v[j + 1], inverse));
            // packs works within 128-bit lanes; the permutation puts the four quarters in order.
            const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + i + 8 * j), packed);
        }
    }
}

// Eight rows of eight 32-bit elements become columns.
void transpose_8x8(__m256i r[8]) {
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

// A panel of kColumns rows of W: for each block, 16 pairs of neighbouring weights x columns, and a scale for each column.
void pack_panel(const uint8_t * w, int64_t w_row, int64_t blocks, int64_t width, int16_t * out, float * scales) {
    static const uint8_t zeros[kBlockBytes] = {};
    for (int64_t b = 0; b < blocks; b++, out += kBlock * kColumns, scales += kColumns) {
        const uint8_t * block[kColumns];
        for (int j = 0; j < kColumns; j++) {
            block[j] = j < width ? w + j * w_row + b * kBlockBytes : zeros;
            scales[j] = read_scale(block[j]);
        }
        for (int half = 0; half < 2; half++) {
            for (int j = 0; j < kColumns; j += 8) {
                __m256i r[8];
                for (int i = 0; i < 8; i++) r[i] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block[j + i] + 2 + 16 * half)));
                transpose_8x8(r);
                for (int i = 0; i < 8; i++) _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 2 * ((8 * half + i) * kColumns + j)), r[i]);
            }
        }
    }
}

// A panel of kRows rows of X as the tile reads them: for each block, 16 pairs of neighbouring values x rows, and a scale for
// each row. `rows` is where they lie in between: [kRows, k], and their scales [kRows, k / kBlock].
void pack_rows(const int16_t * rows, const float * rows_scales, int64_t k, int16_t * out, float * scales) {
    const int64_t blocks = k / kBlock;
    for (int64_t p = 0; p < k; p += 8, out += 8 * kRows) {
        __m128i r[kRows];
        for (int i = 0; i < kRows; i++) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(rows + i * k + p));
        const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpacklo_epi32(r[2], r[3]), c = _mm_unpackhi_epi32(r[0], r[1]), d = _mm_unpackhi_epi32(r[2], r[3]);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_unpacklo_epi64(a, b));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 8), _mm_unpackhi_epi64(a, b));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 16), _mm_unpacklo_epi64(c, d));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 24), _mm_unpackhi_epi64(c, d));
    }
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < kRows; i++) scales[b * kRows + i] = rows_scales[i * blocks + b];
    }
}

// c [kRows, kColumns] (+)= the product of a panel of X and one of W.
void run_tile(int64_t blocks, const int16_t * x, const float * x_scales, const int16_t * w, const float * w_scales, float * c, int64_t c_row, bool accumulate) {
    for (int64_t b = 0; b < blocks; b++, x += kBlock * kRows, x_scales += kRows, w += kBlock * kColumns, w_scales += kColumns) {
        __m256i sums[kRows][2];
#pragma GCC unroll 4
        for (int i = 0; i < kRows; i++) sums[i][0] = sums[i][1] = _mm256_setzero_si256();
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
                // Does nothing: without it the compiler adds the products up as a tree, and runs out of registers.
                asm("" : "+x"(sums[i][0]), "+x"(sums[i][1]));
            }
        }
        const __m256 s0 = _mm256_loadu_ps(w_scales), s1 = _mm256_loadu_ps(w_scales + 8);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; i++) {
            const __m256 scale = _mm256_set1_ps(x_scales[i]);
            float * out = c + i * c_row;
            const __m256 old0 = accumulate ? _mm256_loadu_ps(out) : _mm256_setzero_ps(), old1 = accumulate ? _mm256_loadu_ps(out + 8) : _mm256_setzero_ps();
            _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i][0]), _mm256_mul_ps(scale, s0), old0));
            _mm256_storeu_ps(out + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i][1]), _mm256_mul_ps(scale, s1), old1));
        }
        accumulate = true;
    }
}

// The sums of eight vectors, as one.
__m256i add_across(const __m256i v[8]) {
    const __m256i front = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i back = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(front, back, 0x20), _mm256_permute2x128_si256(front, back, 0x31));
}

// c [M, 8] = the product of M rows of X and eight rows of W as they are stored, which then need no packing. Blocks are added
// up in the order of run_tile.
template <int M>
void run_few_rows(int64_t blocks, const int16_t * x, const float * x_scales, const uint8_t * w, int64_t w_row, float * c, int64_t c_row) {
    __m256 sums[M] = {};
    for (int64_t b = 0; b < blocks; b++, w += kBlockBytes) {
        __m256i products[M][8];
        __m128i bits = _mm_setzero_si128();
        const auto take = [&](auto index) __attribute__((always_inline)) {
            constexpr int j = decltype(index)::value;
            const uint8_t * block = w + j * w_row;
            _mm_prefetch(reinterpret_cast<const char *>(block) + 512, _MM_HINT_T0);
            uint16_t scale;
            std::memcpy(&scale, block, sizeof scale);
            bits = _mm_insert_epi16(bits, scale, j);
            const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 2)));
            const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 18)));
            for (int i = 0; i < M; i++) {
                const auto * in = reinterpret_cast<const __m256i *>(x + (i * blocks + b) * kBlock);
                products[i][j] = _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_loadu_si256(in)), _mm256_madd_epi16(high, _mm256_loadu_si256(in + 1)));
            }
        };
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

constexpr decltype(&run_few_rows<1>) few_rows[kFewRows] = {run_few_rows<1>, run_few_rows<2>, run_few_rows<3>, run_few_rows<4>, run_few_rows<5>, run_few_rows<6>};

void multiply_few_rows(const Q8Gemm & g, int64_t i_begin, int64_t rows, int64_t j_begin, int64_t j_end, Q8Workspace & ws) {
    const int64_t blocks = g.k / kBlock;
    ws.row.resize(std::max(ws.row.size(), size_t(rows * g.k)));
    ws.row_scales.resize(std::max(ws.row_scales.size(), size_t(rows * blocks)));
    for (int64_t i = 0; i < rows; i++) quantize_row(g.x + (i_begin + i) * g.x_row, g.k, ws.row.data() + i * g.k, ws.row_scales.data() + i * blocks);
    for (int64_t j = j_begin; j < j_end; j += 8) {
        const uint8_t * w = static_cast<const uint8_t *>(g.w) + j * g.w_row;
        few_rows[rows - 1](blocks, ws.row.data(), ws.row_scales.data(), w, g.w_row, g.c + i_begin * g.c_row + j, g.c_row);
    }
}

}  // namespace

void run_q8_gemm_avx2(const Q8Gemm & g, int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end, Q8Workspace & ws) {
    const int64_t rows = i_end - i_begin, padded = (rows + kRows - 1) / kRows * kRows, blocks = g.k / kBlock;
    if (rows <= kFewRows && (j_end - j_begin) % 8 == 0) return multiply_few_rows(g, i_begin, rows, j_begin, j_end, ws);
    ws.row.resize(std::max(ws.row.size(), size_t(kRows * g.k)));
    ws.row_scales.resize(std::max(ws.row_scales.size(), size_t(kRows * blocks)));
    ws.x.resize(std::max(ws.x.size(), size_t(padded * g.k)));
    ws.x_scales.resize(std::max(ws.x_scales.size(), size_t(padded * blocks)));
    for (int64_t i = 0; i < padded; i += kRows) {
        for (int64_t r = 0; r < kRows; r++) {
            // Rows past the last repeat it: their results are not stored.
            quantize_row(g.x + std::min(i_begin + i + r, i_end - 1) * g.x_row, g.k, ws.row.data() + r * g.k, ws.row_scales.data() + r * blocks);
        }
        pack_rows(ws.row.data(), ws.row_scales.data(), g.k, ws.x.data() + i * g.k, ws.x_scales.data() + i * blocks);
    }
    ws.w.resize(size_t(kDepth * kBlockColumns));
    ws.w_scales.resize(size_t(kDepth / kBlock * kBlockColumns));
    for (int64_t j0 = j_begin; j0 < j_end; j0 += kBlockColumns) {
        const int64_t width = std::min(kBlockColumns, j_end - j0);
        for (int64_t p0 = 0; p0 < g.k; p0 += kDepth) {
            const int64_t depth = std::min(kDepth, g.k - p0), depth_blocks = depth / kBlock;
            for (int64_t j = 0; j < width; j += kColumns) {
                const uint8_t * w = static_cast<const uint8_t *>(g.w) + (j0 + j) * g.w_row + p0 / kBlock * kBlockBytes;
                pack_panel(w, g.w_row, depth_blocks, std::min<int64_t>(kColumns, width - j), ws.w.data() + j * depth, ws.w_scales.data() + j * depth_blocks);
            }
            for (int64_t block = 0; block < rows; block += kBlockRows) {
                const int64_t block_end = std::min(block + kBlockRows, rows);
                for (int64_t j = 0; j < width; j += kColumns) {
                    for (int64_t i = block; i < block_end; i += kRows) {
                        const int64_t full_rows = std::min<int64_t>(kRows, rows - i), full_columns = std::min<int64_t>(kColumns, width - j);
                        float * c = g.c + (i_begin + i) * g.c_row + j0 + j;
                        const int16_t * x = ws.x.data() + i * g.k + p0 * kRows;
                        const float * x_scales = ws.x_scales.data() + i * blocks + p0 / kBlock * kRows;
                        const int16_t * w = ws.w.data() + j * depth;
                        const float * w_scales = ws.w_scales.data() + j * depth_blocks;
                        if (full_rows == kRows && full_columns == kColumns) {
                            for (int r = 0; r < kRows; r++) _mm_prefetch(reinterpret_cast<const char *>(c + r * g.c_row), _MM_HINT_T0);
                            run_tile(depth_blocks, x, x_scales, w, w_scales, c, g.c_row, p0 > 0);
                            continue;
                        }
                        float tile[kRows * kColumns];
                        for (int64_t r = 0; p0 > 0 && r < full_rows; r++) std::memcpy(tile + r * kColumns, c + r * g.c_row, size_t(full_columns) * sizeof(float));
                        run_tile(depth_blocks, x, x_scales, w, w_scales, tile, kColumns, p0 > 0);
                        for (int64_t r = 0; r < full_rows; r++) std::memcpy(c + r * g.c_row, tile + r * kColumns, size_t(full_columns) * sizeof(float));
                    }
                }
            }
        }
    }
}

}  // namespace cria
