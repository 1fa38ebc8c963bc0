// 128-bit registers: NEON has 32 of them, SSE 16.
#define CRIA_KERNEL_VECTOR Vec4
#ifdef __aarch64__
#define CRIA_KERNEL_ROWS 6
#define CRIA_KERNEL_VECTORS 4
#else
#define CRIA_KERNEL_ROWS 4
#define CRIA_KERNEL_VECTORS 2
#endif
#define CRIA_KERNEL_NAME gemm_portable
#include "cpu/gemm_kernel.h"
