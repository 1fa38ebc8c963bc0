// Products with frozen weights in integers: 16-bit multiply-adds do the work of two F32 ones each. 32 products at a
// time are summed exactly, then scaled and added up in F32. Q8_0 weights forward are multiplied as llama.cpp decodes,
// with activations rounded to Q8_0 too. All else rounds both operands to 14 bits of the largest of 32 values along the
// sum, which loses less than half of what rounding to F16 does.
#pragma once

#include <cstdint>
#include <vector>

#include "ggml.h"

namespace cria {

// C[i, j] = sum_p X[i, p] W[j, p], or added to C; k is a multiple of 32. Transposed: sum_p X[i, p] W[p, j].
struct IntegerGemm {
    int64_t m, n, k;
    const float * x;
    int64_t x_row;  // in floats
    const void * w;
    ggml_type w_type;  // forward Q8_0; transposed any but F32
    int64_t w_row;  // in bytes; rows are stored whole
    bool transposed;
    float * c;
    int64_t c_row;
    bool accumulate;
};

struct IntegerWorkspace {
    std::vector<int16_t> row, w;
    std::vector<float> row_scales, x, w_scales, floats;
};

// Whether this machine has the instructions, and the product the form; else the caller has run_gemm, or ggml.
bool has_integer_gemm();
bool fits_integers(ggml_type w_type, bool transposed, int64_t k);

// This thread's part, as run_gemm.
void run_integer_gemm(const IntegerGemm & gemm, int part, int parts, IntegerWorkspace & workspace);

// The same in two steps, for threads that share the first one's work, and products that share X: first X is rounded,
// then columns are multiplied.

// Rows are rounded in panels of so many; the last panel is filled up.
constexpr int64_t kRoundedRows = 4;
// What a row of k values takes, in floats.
inline int64_t rounded_size(int64_t k) { return k / 2 + k / 32; }
// out [rows up to a whole panel, rounded_size(k)] = X, rows [begin, end) of it; begin is where a panel begins.
void round_rows(const IntegerGemm & gemm, int64_t begin, int64_t end, float * out, IntegerWorkspace & workspace);
// Columns [j_begin, j_end), which begin and end at a multiple of integer_column_unit(), or end with the last.
void run_integer_columns(
    const IntegerGemm & gemm, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);
int64_t integer_column_unit(const IntegerGemm & gemm);

}  // namespace cria
