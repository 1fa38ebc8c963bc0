#include "math/row_kernel.h"

#include "cpu/kernel_choice.h"

namespace cria {

const RowKernel & row_kernel() {
#ifdef __x86_64__
    static const RowKernel & kernel = pick_for_kernel(row_portable, row_avx2, row_avx512);
    return kernel;
#else
    return row_portable;
#endif
}

}  // namespace cria
