#include "train/short_convolution.h"

#include "train/causal_convolution.h"

namespace cria {

namespace {

// B, C or X of the gates.
ggml_tensor * view_gate(Graph & g, ggml_tensor * gates, int64_t number) {
    const int64_t d = gates->ne[0] / 3;
    return ggml_view_2d(g.ctx(), gates, d, gates->ne[1], gates->nb[1], size_t(number * d) * sizeof(float));
}

// B * X [d, T].
ggml_tensor * make_input(Graph & g, ggml_tensor * gates) {
    return ggml_mul(g.ctx(), view_gate(g, gates, 0), view_gate(g, gates, 2));
}

}  // namespace

ggml_tensor * short_convolution_forward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ConvolutionState & state) {
    state.conv = causal_convolution_forward(g, convolution, ancestors, make_input(g, state.gates));
    return ggml_mul(g.ctx(), state.conv, view_gate(g, state.gates, 1));
}

ggml_tensor * short_convolution_backward(Graph & g, const Convolution & convolution, ggml_tensor * ancestors,
    const ConvolutionState & state, ggml_tensor * d_out) {
    ggml_context * c = g.ctx();
    ggml_tensor * d_conv = ggml_mul(c, d_out, view_gate(g, state.gates, 1));
    ggml_tensor * d_input = causal_convolution_backward(g, convolution, ancestors, make_input(g, state.gates), d_conv);
    ggml_tensor * d_b = ggml_mul(c, d_input, view_gate(g, state.gates, 2));
    ggml_tensor * d_c = ggml_mul(c, d_out, state.conv);
    ggml_tensor * d_x = ggml_mul(c, d_input, view_gate(g, state.gates, 0));
    return ggml_concat(c, ggml_concat(c, d_b, d_c, 0), d_x, 0);
}

}  // namespace cria
