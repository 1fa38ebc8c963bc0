// The AVX2 implementation of integer_gemm.h; call it only if has_integer_gemm(). Nothing here grows a workspace: a
// function of the standard library that this unit instantiated would be compiled with AVX2, and the linker may keep
// that copy for the whole program.
#pragma once

#include "cpu/integer_gemm.h"

namespace cria::avx2 {

// Sizes that the workspace must have for any function below.
struct WorkspaceSizes {
    size_t row, row_scales, row_sums, w, w_scales, w_mins, floats;
};
WorkspaceSizes workspace_sizes(const IntegerGemm & gemm);

// Whether weights of this type can be multiplied as they are stored.
bool has_blocks(ggml_type type);

bool has_few_rows(const IntegerGemm & gemm, int64_t columns);
void multiply_few_rows(const IntegerGemm & gemm, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);

void round_rows(const IntegerGemm & gemm, int64_t begin, int64_t end, float * out, IntegerWorkspace & workspace);
void multiply_columns(
    const IntegerGemm & gemm, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);

}  // namespace cria::avx2
