// Loops over rows with fused operations in registers of four: the width of a register must not matter.
#define CRIA_KERNEL_NAME row_in_fours
#define CRIA_KERNEL_VECTOR Vec4
#include "kernel_bits.h"

#include "math/row_loops.h"
