#pragma once

#include <cstdint>

namespace cria {

// d_gate = dy * up * silu'(gate), d_up = dy * silu(gate).
void swiglu_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n);

}  // namespace cria
