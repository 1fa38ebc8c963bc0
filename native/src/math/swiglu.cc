#include "math/swiglu.h"

#include "math/fast_exp.h"

namespace cria {

namespace {

CRIA_CLONES void gradient_of(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float x = gate[i];
        // fast_exp wants no positive numbers: e^-|x| gives the sigmoid of either sign.
        const float e = fast_exp(x < 0.0f ? x : -x);
        const float sigmoid = (x < 0.0f ? e : 1.0f) / (1.0f + e);
        d_up[i] = dy[i] * x * sigmoid;
        d_gate[i] = dy[i] * up[i] * sigmoid * (1.0f + x * (1.0f - sigmoid));
    }
}

}  // namespace

void swiglu_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) { gradient_of(gate, up, dy, d_gate, d_up, n); }

}  // namespace cria
