// Kernels for tests only.
#pragma once

#include "cpu/gemm.h"
#include "math/row_kernel.h"

namespace cria {

#ifdef __x86_64__
extern const GemmKernel gemm_avx512_in_halves;
extern const RowKernel row_in_fours;
#endif

}  // namespace cria
