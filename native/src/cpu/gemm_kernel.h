// The inner tile of a matrix product, written once with vector extensions and compiled once for each instruction set.
// The including file defines CRIA_KERNEL_VECTOR (the type of a register), CRIA_KERNEL_ROWS, CRIA_KERNEL_VECTORS and
// CRIA_KERNEL_NAME. Rows x vectors accumulators, plus a few registers, must fit into the register file.
// The tile and the code for few rows add the same products in the same order, each by add_scaled(): both give an
// element the same bits.
#include <cstring>

#include "cpu/gemm.h"
#include "cpu/vectors.h"

#if defined(__clang__) || __GNUC__ >= 12
#define CRIA_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // GCC before 12
#define CRIA_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask8{__VA_ARGS__})
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
CRIA_INLINE void transpose_8x8(Vec8 r[8]) {
    Vec8 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = CRIA_SHUFFLE(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = CRIA_SHUFFLE(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[4 * i] = CRIA_SHUFFLE(t[4 * i], t[4 * i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 1] = CRIA_SHUFFLE(t[4 * i], t[4 * i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[4 * i + 2] = CRIA_SHUFFLE(t[4 * i + 1], t[4 * i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 3] = CRIA_SHUFFLE(t[4 * i + 1], t[4 * i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = CRIA_SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = CRIA_SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
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

inline float to_float(float value) { return value; }
inline float to_float(ggml_fp16_t value) { return ggml_fp16_to_fp32(value); }
inline float to_float(ggml_bf16_t value) { return ggml_bf16_to_fp32(value); }

void pack_transposed(const float * in, int64_t column, int64_t depth, float * out) {
    const int64_t whole = depth / 8 * 8;
    for (int64_t p = 0; p < whole; p += 8) {
        for (int j = 0; j < kColumns; j += 8) {
            Vec8 r[8];
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) load_8(in + (j + i) * column + p, r[i]);
            transpose_8x8(r);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) *reinterpret_cast<Vec8 *>(out + (p + i) * kColumns + j) = r[i];
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

// c[i, j] (+)= sum_p a[i * a_row + p] b[j * column + p] for M rows and G times eight columns, added up as run_tile
// does. B is transposed in registers: for few rows that costs less than packing it. What is read next goes to the
// second cache: there is room for it, whereas in the first it would displace rows that are being read.
template <int M, int G, typename T>
void run_columns(int64_t k, const float * a, int64_t a_row, const T * b, int64_t column, const char * ahead, float * c,
    int64_t c_row, bool accumulate) {
    Vec8 sums[G][M] = {};
    const int64_t whole = k / 8 * 8;
    for (int64_t p = 0; p < whole; p += 8) {
#pragma GCC unroll 2
        for (int g = 0; g < G; g++) {
            for (size_t line = 0; line < sizeof(T); line++, ahead += 64) __builtin_prefetch(ahead, 0, 2);
            Vec8 r[8];
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) load_8(b + (8 * g + j) * column + p, r[j]);
            transpose_8x8(r);
#pragma GCC unroll 8
            for (int q = 0; q < 8; q++) {
#pragma GCC unroll 8
                for (int i = 0; i < M; i++) add_scaled(sums[g][i], a[i * a_row + p + q], r[q]);
            }
        }
    }
    for (int64_t p = whole; p < k; p++) {
        for (int g = 0; g < G; g++) {
            float values[8];
            for (int j = 0; j < 8; j++) values[j] = to_float(b[(8 * g + j) * column + p]);
            Vec8 last;
            load_8(values, last);
            for (int i = 0; i < M; i++) add_scaled(sums[g][i], a[i * a_row + p], last);
        }
    }
    for (int i = 0; i < M; i++) {
        for (int g = 0; g < G; g++) {
            Vec8 * out = reinterpret_cast<Vec8 *>(c + i * c_row + 8 * g);
            *out = accumulate ? *out + sums[g][i] : sums[g][i];
        }
    }
}

// One row alone, or two, wait for each sum to be ready: two groups of columns wait together.
template <int M, typename T>
void run_groups(int64_t k, int64_t columns, const float * a, int64_t a_row, const T * b, int64_t column,
    const char * ahead, float * c, int64_t c_row, bool accumulate) {
    constexpr int G = M <= 2 ? 2 : 1;
    int64_t j = 0;
    for (; j + 8 * G <= columns; j += 8 * G, ahead += 8 * G * k * int64_t(sizeof(T)))
        run_columns<M, G>(k, a, a_row, b + j * column, column, ahead, c + j, c_row, accumulate);
    for (; j < columns; j += 8) run_columns<M, 1>(k, a, a_row, b + j * column, column, ahead, c + j, c_row, accumulate);
}

template <int M>
void run_few_rows(int64_t k, int64_t columns, const float * a, int64_t a_row, ggml_type type, const void * b,
    int64_t column, const char * ahead, float * c, int64_t c_row, bool accumulate) {
    const auto run = [&](const auto * values) {
        run_groups<M>(k, columns, a, a_row, values, column, ahead, c, c_row, accumulate);
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
