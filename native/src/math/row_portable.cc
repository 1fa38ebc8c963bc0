#define CRIA_KERNEL_VECTOR Vec4
#define CRIA_KERNEL_NAME row_portable
#include "math/row_loops.h"
