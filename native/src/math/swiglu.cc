#include "math/swiglu.h"

#include "math/row_kernel.h"

namespace cria {

void swiglu_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) {
    row_kernel().swiglu_gradient(gate, up, dy, d_gate, d_up, n);
}

}  // namespace cria
