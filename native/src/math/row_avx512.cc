#define CRIA_KERNEL_VECTOR Vec16
#define CRIA_KERNEL_NAME row_avx512
#include "math/row_loops.h"
