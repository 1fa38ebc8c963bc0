// Loops over rows of numbers: softmax, gates, the rule of states, and their gradients. Compiled once for each
// instruction set (row_loops.h). Sums use sixteen lanes for any width of a register, so that kernels differ only by
// fused rounding. z = x * scale throughout.
#pragma once

#include <cstdint>

namespace cria {

// Clamped gates are x sigmoid(kGateSlope x) (y + 1), with x = min(gate, kGateLimit) and y = up within both limits.
constexpr float kGateSlope = 1.702f, kGateLimit = 7.0f;

// GELU by tanh's approximation is x sigmoid(z) with z = c x + d x^3, because tanh(z / 2) = 2 sigmoid(z) - 1.
constexpr float kGeluC = 2.0f * 0.79788456080286535588f, kGeluD = kGeluC * 0.044715f;

// One token of one head of the rule of states (cpu/state_rule.h). The state's rows are the key's dimensions.
struct StateToken {
    const float *q, *k, *v;  // [key_size], [key_size], [value_size]
    float log_decay, beta;
    int key_size, value_size;  // the first a multiple of 4; both at most kMostState
    bool corrects;
};
constexpr int kMostState = 256;

struct StateTokenGradient {
    float *q, *k, *v;  // q's and k's are added to, because value heads share them
    float log_decay, beta;
};

struct RowKernel {
    // The largest z that is a number, or -inf.
    float (*largest)(const float * x, int n, float scale);
    // Sum of exp(z - max).
    double (*sum_exp)(const float * x, int n, float scale, float max);
    // out = exp(z - offset); `out` may be x.
    void (*exp_of)(const float * x, int n, float scale, float offset, float * out);
    // x becomes exp(z - max); returns the sum.
    float (*replace_by_exp)(float * x, int n, float scale, float max);
    // The same; adds the sum of exp(z - max) (z - max) to `weighted`.
    double (*replace_by_exp_times)(float * x, int n, float scale, float max, double & weighted);
    void (*scale_row)(float * x, int n, float factor);
    // sum += x w, entry by entry.
    void (*add_products)(const float * x, const float * w, float * sum, int64_t n);
    // d becomes p (d - delta) scale.
    void (*backward)(float * d, const float * p, int n, float scale, float delta);
    // x becomes -p (c + e (log p + entropy)) scale for p = exp(z - offset).
    void (*gradient)(float * x, int n, float scale, float offset, float entropy, float c, float e);
    void (*swiglu_gradient)(
        const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n);
    // The gradient of clamped gates.
    void (*clamped_gradient)(
        const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n);
    // out = gelu(gate) up, by tanh's approximation, and its gradient.
    void (*geglu)(const float * gate, const float * up, float * out, int64_t n);
    void (*geglu_gradient)(
        const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n);
    // The state [value_size, key_size] behind the token from that before it, in place, and its output [value_size].
    void (*state_step)(float * state, const StateToken & token, float * out);
    // The token's gradient from its output's and from that of the state behind it, which becomes that of `before`.
    void (*state_gradient)(const float * before, const StateToken & token, const float * d_out, float * d_state,
        StateTokenGradient & gradient);
};

// The kernel of this process (cpu/kernel_choice.h).
const RowKernel & row_kernel();

extern const RowKernel row_portable;
#ifdef __x86_64__
extern const RowKernel row_avx2, row_avx512;
#endif

}  // namespace cria
