// The implementations of integer_gemm.h, one for each instruction set; integer_gemm.cc chooses. All give the same bits:
// sums of integers are exact. Nothing in them grows a workspace: a function of the standard library that such a unit
// instantiated would be compiled with its instructions, and the linker may keep that copy for the whole program.
#pragma once

#include <cstddef>

#include "cpu/integer_gemm.h"

namespace cria {

// Sizes that the workspace must have for any function below.
struct WorkspaceSizes {
    size_t row, row_scales, row_sums, w, w_scales, w_mins, floats;
};

struct IntegerKernel {
    WorkspaceSizes (*workspace_sizes)(const IntegerGemm & gemm);
    // Whether weights of this type can be multiplied as they are stored.
    bool (*has_blocks)(ggml_type type);
    bool (*has_few_rows)(const IntegerGemm & gemm, int64_t columns);
    void (*multiply_few_rows)(const IntegerGemm & gemm, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);
    void (*round_rows)(const IntegerGemm & gemm, int64_t begin, int64_t end, float * out, IntegerWorkspace & workspace);
    void (*multiply_columns)(
        const IntegerGemm & gemm, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & workspace);
};

namespace avx2 {
extern const IntegerKernel integer_kernel;
}
// AVX-512's instructions for sums of small integers.
namespace vnni {
extern const IntegerKernel integer_kernel;
}

}  // namespace cria
