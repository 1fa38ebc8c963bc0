#include "train/gate.h"

#include "cpu/shared_range.h"
#include "math/row_kernel.h"
#include "train/backward.h"

namespace cria {

namespace {

GateGradient gelu_backward_by_ggml(Graph & g, ggml_tensor * gate, ggml_tensor * up, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    ggml_tensor * square = ggml_sqr(c, gate);
    ggml_tensor * sigmoid = ggml_sigmoid(c, ggml_mul(c, gate, ggml_scale_bias(c, square, kGeluD, kGeluC)));
    // gelu' = s + x s (1 - s) z' with z' = c + 3 d x^2
    ggml_tensor * slope = ggml_mul(c, gate, ggml_scale_bias(c, square, 3.0f * kGeluD, kGeluC));
    slope = ggml_scale_bias(c, ggml_mul(c, slope, ggml_scale_bias(c, sigmoid, -1.0f, 1.0f)), 1.0f, 1.0f);
    return {ggml_mul(c, ggml_mul(c, dy, up), ggml_mul(c, sigmoid, slope)), ggml_mul(c, dy, ggml_mul(c, gate, sigmoid))};
}

auto find_gradient(Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return row_kernel().geglu_gradient;
        case Activation::clamped_silu:
            return row_kernel().clamped_gradient;
        default:
            return row_kernel().swiglu_gradient;
    }
}

}  // namespace

ggml_tensor * gate_forward(Graph & g, Activation activation, ggml_tensor * gate, ggml_tensor * up) {
    if (activation == Activation::silu) return ggml_swiglu_split(g.ctx(), gate, up);
    if (activation == Activation::clamped_silu) return ggml_swiglu_oai(g.ctx(), gate, up, kGateSlope, kGateLimit);
    if (!g.on_cpu()) return ggml_geglu_split(g.ctx(), gate, up);
    // ggml takes GELU from a table of F16 values; decoding uses this one too (infer/own_products.h).
    return g.custom({gate->ne[0], gate->ne[1]}, {gate, up}, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const auto floats = [](const ggml_tensor * t) { return static_cast<float *>(t->data); };
        const int64_t n = ggml_nelements(node), begin = part_begin(n, 64, thread, threads),
                      end = part_begin(n, 64, thread + 1, threads);
        row_kernel().geglu(
            floats(node->src[0]) + begin, floats(node->src[1]) + begin, floats(node) + begin, end - begin);
    });
}

GateGradient gate_backward(Graph & g, Activation activation, ggml_tensor * gate, ggml_tensor * up, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    if (!g.on_cpu() && activation == Activation::gelu) return gelu_backward_by_ggml(g, gate, up, dy);
    if (!g.on_cpu()) return {silu_backward(g, ggml_mul(c, dy, up), gate), ggml_mul(c, dy, ggml_silu(c, gate))};
    // One pass over memory instead of four; both gradients in one tensor, one behind the other.
    const int64_t ff = gate->ne[0], T = gate->ne[1];
    ggml_tensor * both =
        g.custom({ff, 2 * T}, {gate, up, dy}, [activation](ggml_tensor * node, int thread, int threads, Compute &) {
        const auto floats = [](const ggml_tensor * t) { return static_cast<float *>(t->data); };
        // In whole blocks: the compiler's code for elements that do not fill a register must not depend on where a
        // thread begins.
        const int64_t n = ggml_nelements(node) / 2, begin = part_begin(n, 64, thread, threads),
                      end = part_begin(n, 64, thread + 1, threads);
        const auto gradient = find_gradient(activation);
        gradient(floats(node->src[0]) + begin, floats(node->src[1]) + begin, floats(node->src[2]) + begin,
            floats(node) + begin, floats(node) + n + begin, end - begin);
    });
    return {ggml_view_2d(c, both, ff, T, both->nb[1], 0),
        ggml_view_2d(c, both, ff, T, both->nb[1], size_t(T) * both->nb[1])};
}

}  // namespace cria
