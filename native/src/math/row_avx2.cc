#define CRIA_KERNEL_VECTOR Vec8
#define CRIA_KERNEL_NAME row_avx2
#include "math/row_loops.h"
