#include "train/short_convolution.h"

namespace cria {

namespace {

// B, C or X of the gates.
ggml_tensor * view_gate(Graph & g, ggml_tensor * gates, int64_t number) {
    const int64_t d = gates->ne[0] / 3;
    return ggml_view_2d(g.ctx(), gates, d, gates->ne[1], gates->nb[1], size_t(number * d) * sizeof(float));
}

// Parts of one convolution. Tap k is for the token that is taps - 1 - k before.
class Taps {
   public:
    Taps(Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * gates)
        : count(convolution.weight->ne[0]), g_(g), ancestors_(ancestors),
          weight_(ggml_cont(g.ctx(), ggml_transpose(g.ctx(), convolution.weight))),
          input_(ggml_mul(g.ctx(), view_gate(g, gates, 0), view_gate(g, gates, 2))),
          padded_(ggml_pad(g.ctx(), input_, 0, 1, 0, 0)) {}

    const int64_t count;

    ggml_tensor * weight(int64_t k) const {
        return ggml_view_2d(g_.ctx(), weight_, weight_->ne[0], 1, weight_->nb[1], size_t(k) * weight_->nb[1]);
    }
    // B * X of the token that each token's tap reads [d, T].
    ggml_tensor * input(int64_t k) const {
        return k == count - 1 ? input_ : ggml_get_rows(g_.ctx(), padded_, ancestors(k));
    }
    // The gradient of B * X [d, T] from that of input(k). Tokens that several read add up in the batch's order.
    ggml_tensor * input_gradient(int64_t k, ggml_tensor * dy) const {
        if (k == count - 1) return dy;
        ggml_tensor * sums = ggml_get_rows_back(g_.ctx(), dy, ancestors(k), padded_);
        return ggml_view_2d(g_.ctx(), sums, sums->ne[0], dy->ne[1], sums->nb[1], 0);
    }

   private:
    ggml_tensor * ancestors(int64_t k) const {
        const int64_t distance = count - 1 - k;
        return ggml_view_1d(g_.ctx(), ancestors_, ancestors_->ne[0], size_t(distance - 1) * ancestors_->nb[1]);
    }
    Graph & g_;
    ggml_tensor * ancestors_;
    ggml_tensor * weight_;  // [d, taps]
    ggml_tensor * input_;  // B * X [d, T]
    ggml_tensor * padded_;  // the same and a column of zeros, for tokens without such an ancestor
};

}  // namespace

ggml_tensor * short_convolution_forward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ConvolutionState & state) {
    ggml_context * c = g.ctx();
    const Taps taps(g, convolution, ancestors, state.gates);
    state.conv = ggml_mul(c, taps.input(0), taps.weight(0));
    for (int64_t k = 1; k < taps.count; k++)
        state.conv = ggml_add(c, state.conv, ggml_mul(c, taps.input(k), taps.weight(k)));
    return ggml_mul(c, state.conv, view_gate(g, state.gates, 1));
}

ggml_tensor * short_convolution_backward(Graph & g, const Convolution & convolution, ggml_tensor * ancestors,
    const ConvolutionState & state, ggml_tensor * d_out) {
    ggml_context * c = g.ctx();
    const Taps taps(g, convolution, ancestors, state.gates);
    ggml_tensor * d_conv = ggml_mul(c, d_out, view_gate(g, state.gates, 1));
    ggml_tensor *d_input = nullptr, *d_weight = nullptr;  // of B * X; [d, taps]
    for (int64_t k = 0; k < taps.count; k++) {
        ggml_tensor * part = taps.input_gradient(k, ggml_mul(c, d_conv, taps.weight(k)));
        d_input = d_input ? ggml_add(c, d_input, part) : part;
        if (!convolution.d_weight) continue;
        ggml_tensor * column = ggml_repeat_back(c, ggml_mul(c, d_conv, taps.input(k)), taps.weight(k));
        d_weight = d_weight ? ggml_concat(c, d_weight, column, 1) : column;
    }
    if (d_weight) g.accumulate(ggml_cont(c, ggml_transpose(c, d_weight)), convolution.d_weight);
    ggml_tensor * d_b = ggml_mul(c, d_input, view_gate(g, state.gates, 2));
    ggml_tensor * d_c = ggml_mul(c, d_out, state.conv);
    ggml_tensor * d_x = ggml_mul(c, d_input, view_gate(g, state.gates, 0));
    return ggml_concat(c, ggml_concat(c, d_b, d_c, 0), d_x, 0);
}

}  // namespace cria
