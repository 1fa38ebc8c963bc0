#define CRIA_KERNEL_VECTOR Vec8
#define CRIA_KERNEL_ROWS 6
#define CRIA_KERNEL_VECTORS 2
#define CRIA_KERNEL_NAME gemm_avx2
#include "cpu/gemm_kernel.h"
