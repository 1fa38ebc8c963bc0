// The AVX-512 kernel's tile with AVX2 instructions, to check its results on a CPU without AVX-512.
#define CRIA_KERNEL_NAME gemm_avx512_in_halves
#define CRIA_KERNEL_VECTOR Vec16
#define CRIA_KERNEL_ROWS 12
#define CRIA_KERNEL_VECTORS 2
#include "kernel_bits.h"

#include "cpu/gemm_kernel.h"
