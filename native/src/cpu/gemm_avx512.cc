#define CRIA_KERNEL_VECTOR Vec16
#define CRIA_KERNEL_ROWS 12
#define CRIA_KERNEL_VECTORS 2
#define CRIA_KERNEL_NAME gemm_avx512
#include "cpu/gemm_kernel.h"
