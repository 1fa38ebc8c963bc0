// integer_gemm.h's work with AVX2 instructions: only where has_integer_gemm().
#pragma once

#include "cpu/integer_gemm.h"

namespace cria::avx2 {

// Q8_0 weights are multiplied as they are stored.
bool has_few_rows(const IntegerGemm & gemm, int64_t columns);
void multiply_few_rows(const IntegerGemm & gemm, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);

void round_rows(const IntegerGemm & gemm, int64_t begin, int64_t end, float * out, IntegerWorkspace & workspace);
void multiply_columns(const IntegerGemm & gemm, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);

}  // namespace cria::avx2
