// Integer products with frozen weights: 16-bit multiply-adds do the work of two F32 ones each. The products of a block
// are summed exactly, then scaled and added up in F32. The forward product with quantized weights is computed as
// llama.cpp decodes: activations are rounded to 8 bits of the largest of a block's (32 of them, 256 with K-quants). All
// other products round both operands to 14 bits of the largest of 32 values along the sum, which loses less than half
// as much as rounding to F16.
#pragma once

#include <cstdint>
#include <vector>

#include "ggml.h"

namespace cria {

// C[i, j] = sum_p X[i, p] W[j, p], or added to C; k is a multiple of 32, and of the type's block. Transposed: sum_p
// X[i, p] W[p, j].
struct IntegerGemm {
    int64_t m, n, k;
    const float * x;
    int64_t x_row;  // in floats
    const void * w;
    ggml_type w_type;  // forward as has_integer_weights() says; transposed any but F32
    int64_t w_row;  // in bytes; rows are stored whole
    bool transposed;
    float * c;
    int64_t c_row;
    bool accumulate;
};

struct IntegerWorkspace {
    std::vector<int16_t> row, row_sums, w, w_mins;
    std::vector<int8_t> row_bytes;
    std::vector<float> row_scales, x, w_scales, min_scales, floats;
};

// Whether this machine has the instructions, and the product the right form; otherwise the caller uses run_gemm, or
// ggml.
bool has_integer_gemm();
bool has_integer_weights(ggml_type type);
bool fits_integers(ggml_type w_type, bool transposed, int64_t k);

// Computes this thread's part, as run_gemm does.
void run_integer_gemm(const IntegerGemm & gemm, int part, int parts, IntegerWorkspace & workspace);

// The same in two steps: first X is rounded, then columns are multiplied. Threads, and products with the same X, can
// share the first step.

// Rows are rounded in panels of this many; the last panel is padded.
constexpr int64_t kRoundedRows = 4;
// Floats that a rounded row of k values takes.
inline int64_t rounded_size(int64_t k) { return k / 2 + k / 16; }
// Rounds rows [begin, end) of X into out [rows up to a whole panel, rounded_size(k)]; begin is the start of a panel.
void round_rows(const IntegerGemm & gemm, int64_t begin, int64_t end, float * out, IntegerWorkspace & workspace);
// Columns [j_begin, j_end), which begin and end at a multiple of integer_column_unit(), or end with the last.
void run_integer_columns(
    const IntegerGemm & gemm, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);
int64_t integer_column_unit(const IntegerGemm & gemm);

}  // namespace cria
