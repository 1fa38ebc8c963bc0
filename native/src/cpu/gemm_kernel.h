// The inner tile of a matrix product, written once with vector extensions and compiled once for each instruction set.
// The including file defines CRIA_KERNEL_VECTOR (the type of a register), CRIA_KERNEL_ROWS, CRIA_KERNEL_VECTORS and
// CRIA_KERNEL_NAME. Rows x vectors accumulators, plus a few registers, must fit into the register file.
// The tile and the code for few rows add the same products in the same order, each by add_scaled(): both give an
// element the same bits.
#include <cstring>

#include "cpu/gemm.h"
#include "cpu/vectors.h"

#if defined(__clang__) || __GNUC__ >= 12
#define CRIA_SHUFFLE(Mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // GCC before 12
#define CRIA_SHUFFLE(Mask, a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif

namespace cria {

namespace {

using Vec = CRIA_KERNEL_VECTOR;

constexpr int kWidth = sizeof(Vec) / sizeof(float);
constexpr int kRows = CRIA_KERNEL_ROWS, kVectors = CRIA_KERNEL_VECTORS, kColumns = kVectors * kWidth;

// c[i, j] (+)= sum_p a[i * a_row + p * a_step] b[p * kColumns + j]
void run_tile(int64_t k, const float * a, int64_t a_row, int64_t a_step, const float * b, float * c, int64_t c_row,
    bool accumulate) {
    // Prefetches C while the sums are built: its rows are far apart, so no hardware prefetcher predicts them.
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i++) {
        __builtin_prefetch(c + i * c_row, 1);
        __builtin_prefetch(c + i * c_row + kColumns - 1, 1);
    }
    Vec sums[kRows][kVectors] = {};
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++, a += a_step, b += kColumns) {
        Vec column[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++) column[v] = *reinterpret_cast<const Vec *>(b + v * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; i++) {
            const float value = a[i * a_row];
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; v++) add_scaled(sums[i][v], value, column[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i++) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++) {
            Vec * out = reinterpret_cast<Vec *>(c + i * c_row + v * kWidth);
            *out = accumulate ? *out + sums[i][v] : sums[i][v];
        }
    }
}

typedef int32_t Mask8 __attribute__((vector_size(32)));

// Eight rows become eight columns, in three rounds of pairwise shuffles.
CRIA_INLINE void transpose(Vec8 r[8]) {
    Vec8 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = CRIA_SHUFFLE(Mask8, r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = CRIA_SHUFFLE(Mask8, r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[4 * i] = CRIA_SHUFFLE(Mask8, t[4 * i], t[4 * i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 1] = CRIA_SHUFFLE(Mask8, t[4 * i], t[4 * i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[4 * i + 2] = CRIA_SHUFFLE(Mask8, t[4 * i + 1], t[4 * i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 3] = CRIA_SHUFFLE(Mask8, t[4 * i + 1], t[4 * i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = CRIA_SHUFFLE(Mask8, r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = CRIA_SHUFFLE(Mask8, r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = t[i];
}

inline void load_8(const float * in, Vec8 & out) { out = *reinterpret_cast<const Vec8 *>(in); }

inline void load_8(const ggml_fp16_t * in, Vec8 & out) {
#ifdef __F16C__
    out = (Vec8)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in)));
#else
    for (int i = 0; i < 8; i++) out[i] = ggml_fp16_to_fp32(in[i]);
#endif
}

inline void load_8(const ggml_bf16_t * in, Vec8 & out) {
#ifdef __AVX2__
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i *>(in));
    out = (Vec8)_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
#else
    for (int i = 0; i < 8; i++) out[i] = ggml_bf16_to_fp32(in[i]);
#endif
}

// r[p][j] = b[j * column + p]: eight values of as many columns as a vector has entries.
template <typename T>
CRIA_INLINE void load_columns(const T * b, int64_t column, Vec8 r[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) load_8(b + j * column, r[j]);
    transpose(r);
}

#ifdef __AVX512F__
typedef int32_t Mask16 __attribute__((vector_size(64)));

// Both halves of the vectors, each as above.
CRIA_INLINE void transpose(Vec16 r[8]) {
#define CRIA_HALVES(a, b, i0, i1, j0, j1)                                                                      \
    CRIA_SHUFFLE(Mask16, a, b, i0, j0, i1, j1, i0 + 4, j0 + 4, i1 + 4, j1 + 4, i0 + 8, j0 + 8, i1 + 8, j1 + 8, \
        i0 + 12, j0 + 12, i1 + 12, j1 + 12)
    Vec16 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = CRIA_HALVES(r[2 * i], r[2 * i + 1], 0, 1, 16, 17);
        t[2 * i + 1] = CRIA_HALVES(r[2 * i], r[2 * i + 1], 2, 3, 18, 19);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[4 * i] = CRIA_HALVES(t[4 * i], t[4 * i + 2], 0, 16, 1, 17);
        r[4 * i + 1] = CRIA_HALVES(t[4 * i], t[4 * i + 2], 2, 18, 3, 19);
        r[4 * i + 2] = CRIA_HALVES(t[4 * i + 1], t[4 * i + 3], 0, 16, 1, 17);
        r[4 * i + 3] = CRIA_HALVES(t[4 * i + 1], t[4 * i + 3], 2, 18, 3, 19);
    }
#undef CRIA_HALVES
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = CRIA_SHUFFLE(Mask16, r[i], r[i + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        t[i + 4] = CRIA_SHUFFLE(Mask16, r[i], r[i + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = t[i];
}

CRIA_INLINE void load_columns(const float * b, int64_t column, Vec16 r[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256d low = _mm256_loadu_pd(reinterpret_cast<const double *>(b + j * column)),
                      high = _mm256_loadu_pd(reinterpret_cast<const double *>(b + (j + 8) * column));
        r[j] = (Vec16)_mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(low), high, 1);
    }
    transpose(r);
}

CRIA_INLINE void widen(__m256i in, const ggml_fp16_t *, Vec16 & out) { out = (Vec16)_mm512_maskz_cvtph_ps(0xffff, in); }

CRIA_INLINE void widen(__m256i in, const ggml_bf16_t *, Vec16 & out) {
    out = (Vec16)_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, in), 16));
}

// Transposed while they are half as wide.
template <typename T>
CRIA_INLINE void load_columns(const T * b, int64_t column, Vec16 r[8]) {
    __m256i rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const auto load = [&](int64_t at) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i *>(b + at * column));
        };
        rows[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(load(j)), load(j + 8), 1);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        pairs[i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
        pairs[i + 4] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int at = i / 2 * 4 + i % 2;
        fours[at] = _mm256_unpacklo_epi32(pairs[2 * i], pairs[2 * i + 1]);
        fours[at + 2] = _mm256_unpackhi_epi32(pairs[2 * i], pairs[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        widen(_mm256_unpacklo_epi64(fours[2 * i], fours[2 * i + 1]), b, r[2 * i]);
        widen(_mm256_unpackhi_epi64(fours[2 * i], fours[2 * i + 1]), b, r[2 * i + 1]);
    }
}

using Columns = Vec16;
#else
using Columns = Vec8;
#endif

inline float to_float(float value) { return value; }
inline float to_float(ggml_fp16_t value) { return ggml_fp16_to_fp32(value); }
inline float to_float(ggml_bf16_t value) { return ggml_bf16_to_fp32(value); }

void pack_transposed(const float * in, int64_t column, int64_t depth, float * out) {
    constexpr int kEntries = sizeof(Columns) / sizeof(float);
    const int64_t whole = depth / 8 * 8;
    for (int64_t p = 0; p < whole; p += 8) {
        for (int j = 0; j < kColumns; j += kEntries) {
            Columns r[8];
            load_columns(in + j * column + p, column, r);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) *reinterpret_cast<Columns *>(out + (p + i) * kColumns + j) = r[i];
        }
    }
    for (int64_t p = whole; p < depth; p++) {
        for (int j = 0; j < kColumns; j++) out[p * kColumns + j] = in[j * column + p];
    }
}

void f16_to_float(const ggml_fp16_t * in, float * out, int64_t n) {
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i))));
#endif
    ggml_fp16_to_fp32_row(in + i, out + i, n - i);
}

void weights_to_float(ggml_type type, const void * in, float * out, int64_t n) {
    if (type == GGML_TYPE_F16) return f16_to_float(static_cast<const ggml_fp16_t *>(in), out, n);
    // Q8_0: blocks of an F16 scale and 32 bytes.
    const char * block = static_cast<const char *>(in);
    for (int64_t i = 0; i < n; i += 32, block += 34) {
        ggml_fp16_t scale;
        std::memcpy(&scale, block, sizeof scale);
        const float d = ggml_fp16_to_fp32(scale);
        const int8_t * q = reinterpret_cast<const int8_t *>(block + 2);
        for (int j = 0; j < 32; j++) out[i + j] = d * float(q[j]);
    }
}

void round_to_f16(const float * in, float * out, int64_t n) {
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT)));
#endif
    for (; i < n; i++) out[i] = ggml_fp16_to_fp32(ggml_fp32_to_fp16(in[i]));
}

// Prefetches kColumnsAtOnce columns behind the `count` of b's those lines that begin in the values from p to p + 8: not
// all columns at once, but each in its turn. They go to the second cache: there is room for them, whereas in the first
// they would displace columns that are being read.
template <int count, typename T>
CRIA_INLINE void prefetch_columns(const T * b, int64_t column, int64_t p) {
    constexpr int kTurns = 64 / int(8 * sizeof(T)), kTurn = count / kTurns;
    const T * const next = b + (kColumnsAtOnce + p / 8 % kTurns * kTurn) * column + p / 8 / kTurns * 8 * kTurns;
#pragma GCC unroll 8
    for (int i = 0; i < kTurn; i++) __builtin_prefetch(next + i * column, 0, 2);
}

// c[i, j] (+)= sum_p a[i * a_row + p] b[j * column + p] for M rows and G vectors of columns, added up as run_tile
// does. B is transposed in registers: for few rows that costs less than packing it.
template <int M, int G, typename V, typename T>
void run_columns(
    int64_t k, const float * a, int64_t a_row, const T * b, int64_t column, float * c, int64_t c_row, bool accumulate) {
    constexpr int kEntries = sizeof(V) / sizeof(float);
    V sums[G][M] = {};
    const int64_t whole = k / 8 * 8;
    for (int64_t p = 0; p < whole; p += 8) {
#pragma GCC unroll 2
        for (int g = 0; g < G; g++) {
            const T * const columns = b + kEntries * g * column;
            prefetch_columns<kEntries>(columns, column, p);
            V r[8];
            load_columns(columns + p, column, r);
#pragma GCC unroll 8
            for (int q = 0; q < 8; q++) {
#pragma GCC unroll 8
                for (int i = 0; i < M; i++) add_scaled(sums[g][i], a[i * a_row + p + q], r[q]);
            }
        }
    }
    for (int64_t p = whole; p < k; p++) {
        for (int g = 0; g < G; g++) {
            float values[kEntries];
            for (int j = 0; j < kEntries; j++) values[j] = to_float(b[(kEntries * g + j) * column + p]);
            V last;
            std::memcpy(&last, values, sizeof last);
            for (int i = 0; i < M; i++) add_scaled(sums[g][i], a[i * a_row + p], last);
        }
    }
    for (int i = 0; i < M; i++) {
        for (int g = 0; g < G; g++) {
            float * const out = c + i * c_row + kEntries * g;
            V before{};
            if (accumulate) std::memcpy(&before, out, sizeof before);
            const V after = accumulate ? before + sums[g][i] : sums[g][i];
            // A vector type that is a template's argument is one that is aligned.
            std::memcpy(out, &after, sizeof after);
        }
    }
}

// Few rows wait for each sum to be ready: two vectors of columns wait together, where there are registers for them.
template <int M, typename T>
void run_groups(int64_t k, int64_t columns, const float * a, int64_t a_row, const T * b, int64_t column, float * c,
    int64_t c_row, bool accumulate) {
    constexpr int kEntries = sizeof(Columns) / sizeof(float), G = M <= (kEntries == 16 ? 4 : 2) ? 2 : 1;
    int64_t j = 0;
    for (; j + kEntries * G <= columns; j += kEntries * G)
        run_columns<M, G, Columns>(k, a, a_row, b + j * column, column, c + j, c_row, accumulate);
    for (; j + kEntries <= columns; j += kEntries)
        run_columns<M, 1, Columns>(k, a, a_row, b + j * column, column, c + j, c_row, accumulate);
    for (; j < columns; j += 8) run_columns<M, 1, Vec8>(k, a, a_row, b + j * column, column, c + j, c_row, accumulate);
}

template <int M>
void run_few_rows(int64_t k, int64_t columns, const float * a, int64_t a_row, ggml_type type, const void * b,
    int64_t column, float * c, int64_t c_row, bool accumulate) {
    const auto run = [&](const auto * values) {
        run_groups<M>(k, columns, a, a_row, values, column, c, c_row, accumulate);
    };
    if (type == GGML_TYPE_F32) run(static_cast<const float *>(b));
    else if (type == GGML_TYPE_F16) run(static_cast<const ggml_fp16_t *>(b));
    else run(static_cast<const ggml_bf16_t *>(b));
}

}  // namespace

const GemmKernel CRIA_KERNEL_NAME = {kRows, kColumns, run_tile, pack_transposed,
    {run_few_rows<1>, run_few_rows<2>, run_few_rows<3>, run_few_rows<4>, run_few_rows<5>, run_few_rows<6>,
        run_few_rows<7>, run_few_rows<8>},
    weights_to_float, round_to_f16};

}  // namespace cria
