#define CRIA_INTEGER_UNIT avx2
#include "cpu/integer_gemm_kernel.h"
