// Loops over rows with fused operations in registers of four: results must not depend on a register's width.
#define CRIA_KERNEL_NAME row_in_fours
#define CRIA_KERNEL_VECTOR Vec4
#include "kernel_bits.h"

#include "math/row_loops.h"
