#include "train/causal_convolution.h"

#include <algorithm>

#include "math/row_kernel.h"
#include "train/backward.h"

namespace cria {

namespace {

// Parts of one convolution. Tap k is for the token that is taps - 1 - k before.
class Taps {
   public:
    Taps(Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x)
        : count(convolution.weight->ne[0]), g_(g), ancestors_(ancestors),
          weight_(ggml_cont(g.ctx(), ggml_transpose(g.ctx(), convolution.weight))), x_(x),
          padded_(ggml_pad(g.ctx(), x, 0, 1, 0, 0)) {}

    const int64_t count;

    ggml_tensor * weight(int64_t k) const {
        return ggml_view_2d(g_.ctx(), weight_, weight_->ne[0], 1, weight_->nb[1], size_t(k) * weight_->nb[1]);
    }
    // x of the token that each token's tap reads [d, T].
    ggml_tensor * input(int64_t k) const {
        return k == count - 1 ? x_ : ggml_get_rows(g_.ctx(), padded_, ancestors(k));
    }
    // The gradient of x [d, T] from that of input(k). Tokens that several read add up in the batch's order.
    ggml_tensor * input_gradient(int64_t k, ggml_tensor * dy) const {
        if (k == count - 1) return dy;
        ggml_tensor * sums = get_rows_backward(g_, dy, ancestors(k), padded_);
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
    ggml_tensor * x_;
    ggml_tensor * padded_;  // x and a column of zeros, for tokens without such an ancestor
};

}  // namespace

// One node that adds the taps up as llama.cpp decodes: one after the other, each product fused where the CPU can.
ggml_tensor * convolve_on_cpu(Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x) {
    ggml_tensor * weight = ggml_cont(g.ctx(), ggml_transpose(g.ctx(), convolution.weight));  // [d, taps]
    return g.custom(
        {x->ne[0], x->ne[1]}, {x, weight, ancestors}, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const ggml_tensor *x = node->src[0], *weight = node->src[1], *ancestors = node->src[2];
        const int64_t d = node->ne[0], T = node->ne[1], taps = weight->ne[1];
        const auto column = [](const ggml_tensor * t, int64_t i) {
            return reinterpret_cast<float *>(static_cast<char *>(t->data) + i * int64_t(t->nb[1]));
        };
        for (int64_t i = thread; i < T; i += threads) {
            float * const out = column(node, i);
            std::fill_n(out, d, 0.0f);
            for (int64_t k = 0; k < taps; k++) {
                const int64_t before = taps - 1 - k;
                const int64_t from =
                    before == 0 ? i : static_cast<const int32_t *>(ancestors->data)[(before - 1) * T + i];
                if (from < T) row_kernel().add_products(column(x, from), column(weight, k), out, d);
            }
        }
    });
}

ggml_tensor * causal_convolution_forward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x) {
    if (g.on_cpu()) return convolve_on_cpu(g, convolution, ancestors, x);
    ggml_context * c = g.ctx();
    const Taps taps(g, convolution, ancestors, x);
    ggml_tensor * sum = ggml_mul(c, taps.input(0), taps.weight(0));
    for (int64_t k = 1; k < taps.count; k++) sum = ggml_add(c, sum, ggml_mul(c, taps.input(k), taps.weight(k)));
    return sum;
}

ggml_tensor * causal_convolution_backward(
    Graph & g, const Convolution & convolution, ggml_tensor * ancestors, ggml_tensor * x, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    const Taps taps(g, convolution, ancestors, x);
    ggml_tensor *dx = nullptr, *d_weight = nullptr;  // d_weight [d, taps]
    for (int64_t k = 0; k < taps.count; k++) {
        ggml_tensor * part = taps.input_gradient(k, ggml_mul(c, dy, taps.weight(k)));
        dx = dx ? ggml_add(c, dx, part) : part;
        if (!convolution.d_weight) continue;
        ggml_tensor * column = repeat_backward(g, ggml_mul(c, dy, taps.input(k)), taps.weight(k));
        d_weight = d_weight ? ggml_concat(c, d_weight, column, 1) : column;
    }
    if (d_weight) g.accumulate(ggml_cont(c, ggml_transpose(c, d_weight)), convolution.d_weight);
    return dx;
}

}  // namespace cria
