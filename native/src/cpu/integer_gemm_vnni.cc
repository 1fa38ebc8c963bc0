#define CRIA_INTEGER_UNIT vnni
#include "cpu/integer_gemm_kernel.h"
