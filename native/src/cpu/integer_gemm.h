// Products with frozen weights in integers: 16-bit multiply-adds do the work of two F32 ones each. 32 products at a time are
// summed exactly, then scaled and added up in F32.
// Q8_0 weights forward are multiplied as llama.cpp decodes, with activations rounded to Q8_0 too. All else rounds both
// operands to 14 bits of the largest of 32 values along the sum, about what rounding to F16 loses.
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
    ggml_type w_type;  // forward Q8_0; transposed any
    int64_t w_row;     // in bytes; rows are stored whole
    bool transposed;
    float * c;
    int64_t c_row;
    bool accumulate;
};

struct IntegerWorkspace {
    std::vector<int16_t> row, x, w;
    std::vector<float> row_scales, x_scales, w_scales, floats;
};

// Whether this machine has the instructions, and the product the form; else the caller has run_gemm, or ggml.
bool has_integer_gemm();
bool fits_integers(ggml_type w_type, bool transposed, int64_t k);

// This thread's part, as run_gemm.
void run_integer_gemm(const IntegerGemm & gemm, int part, int parts, IntegerWorkspace & workspace);

// One part, rows [i_begin, i_end) and columns [j_begin, j_end); only where fits_integers().
void run_integer_gemm_avx2(const IntegerGemm & gemm, int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);

}  // namespace cria
