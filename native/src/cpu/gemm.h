// F32 matrix products on the CPU, blocked and packed after Goto & van de Geijn, "Anatomy of high-performance matrix
// multiplication" (ACM TOMS 34, 2008). Operands may lie in any order, so that backward passes need no transposed
// copies.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/integer_gemm.h"
#include "ggml.h"

namespace cria {

// C[i, j] = sum_p A[i, p] B[p, j], or added to C. Strides in floats; C's columns are contiguous.
struct Gemm {
    int64_t m, n, k;
    const float * a;
    int64_t a_row, a_step;  // from i to i + 1, from p to p + 1
    const void * b;
    // Types other than F32: rows of B are stored whole (b_column is 1, b_step in bytes), or columns are (b_step is 1,
    // b_column in bytes).
    ggml_type b_type;
    int64_t b_step, b_column;
    float * c;
    int64_t c_row;
    bool accumulate;
};

// A product adds up the sum over p in parts of this many values, each by itself.
constexpr int64_t kSumDepth = 256;

// Packed panels of one thread; grows as needed.
struct GemmWorkspace {
    std::vector<float> a, b, row, tile;
    std::vector<float> gathered, product;  // rows of an expert
    IntegerWorkspace integers;
};

// Computes this thread's part of the product: a share of C's rows or columns. The parts may run in any order, and each
// element of C is summed in the same order for any number of parts.
void run_gemm(const Gemm & gemm, int part, int parts, GemmWorkspace & workspace);

// Columns [j_begin, j_end), which begin and end at a multiple of gemm_column_unit(b_type), or end with the last.
void run_gemm_columns(const Gemm & gemm, int64_t j_begin, int64_t j_end, GemmWorkspace & workspace);
int64_t gemm_column_unit(ggml_type b_type);
// Whether the parts of run_gemm are columns: then any columns may go to any thread.
bool has_shared_columns(const Gemm & gemm, int parts);

inline bool is_float_type(ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

// Rows, and columns, computed together by a product that does not pack B.
constexpr int kRowsAtOnce = 8;
constexpr int64_t kColumnsAtOnce = 32;

// A register tile: rows x columns of C, B packed in panels of `columns`.
struct GemmKernel {
    int rows, columns;
    void (*run)(int64_t k, const float * a, int64_t a_row, int64_t a_step, const float * b, float * c, int64_t c_row,
        bool accumulate);
    // out[p * columns + j] = in[j * column + p] for all columns and p < depth.
    void (*pack_transposed)(const float * in, int64_t column, int64_t depth, float * out);
    // [m - 1]: `columns` of C, a multiple of eight up to kColumnsAtOnce, for m rows; B as it is stored. B's columns are
    // F32, F16 or BF16, `column` values apart. As much of the columns behind them is prefetched: columns are read side
    // by side, which hardware does not predict. The sums are those of `run`.
    void (*few_rows[kRowsAtOnce])(int64_t k, int64_t columns, const float * a, int64_t a_row, ggml_type b_type,
        const void * b, int64_t column, float * c, int64_t c_row, bool accumulate);
    // F16 and Q8_0; n is a multiple of the type's block.
    void (*to_float)(ggml_type type, const void * in, float * out, int64_t n);
    // out = in, rounded to F16.
    void (*round_to_f16)(const float * in, float * out, int64_t n);
};

// The kernel of this process (kernel_choice.h).
const GemmKernel & gemm_kernel();

// Converts a row of weights to floats; any type but F32. n is a multiple of the type's block.
void dequantize_row(ggml_type type, const void * in, float * out, int64_t n);

extern const GemmKernel gemm_portable;
#ifdef __x86_64__
extern const GemmKernel gemm_avx2, gemm_avx512;
#endif

}  // namespace cria
