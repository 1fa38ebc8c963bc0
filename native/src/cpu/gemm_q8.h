// Products with Q8_0 weights in integers, as llama.cpp decodes: activations are rounded to Q8_0 too, 32 products at a time
// are summed exactly, scaled and added up in F32. 16-bit multiply-adds do the work of two F32 ones each.
#pragma once

#include <cstdint>
#include <vector>

namespace cria {

// C[i, j] = sum_p X[i, p] W[j, p]. k is a multiple of 32.
struct Q8Gemm {
    int64_t m, n, k;
    const float * x;
    int64_t x_row;  // in floats
    const void * w;
    int64_t w_row;  // in bytes
    float * c;
    int64_t c_row;
};

struct Q8Workspace {
    std::vector<int16_t> row, x, w;
    std::vector<float> row_scales, x_scales, w_scales;
};

// Whether this machine has the instructions; else the caller has ggml.
bool has_q8_gemm();

// This thread's part, as run_gemm.
void run_q8_gemm(const Q8Gemm & gemm, int part, int parts, Q8Workspace & workspace);

// One part, rows [i_begin, i_end) and columns [j_begin, j_end); only where has_q8_gemm().
void run_q8_gemm_avx2(const Q8Gemm & gemm, int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end, Q8Workspace & workspace);

}  // namespace cria
