#include "train/linear.h"

#include <cmath>

#include "train/backward.h"
#include "train/matmul.h"
#include "train/weight_products.h"

namespace cria {

namespace {

// Whether the product with B can take the scale with the few values of the rank, and be added to the outputs at once,
// with the bits of llama.cpp's decode, which scales and adds the whole product: where scaling rounds nothing, and the
// product is one sum.
bool has_exact_scale(const Linear & layer) {
    constexpr int64_t kMostRank = 256;
    int exponent;
    return std::frexp(layer.lora_scale, &exponent) == 0.5f && layer.lora_a->ne[1] <= kMostRank;
}

}  // namespace

ggml_tensor * linear_forward(Graph & g, const Linear & layer, ggml_tensor * x, bool adapter) {
    ggml_context * c = g.ctx();
    ggml_tensor * y = multiply_weight(g, layer.weight, x);
    if (adapter && layer.lora_a) {
        ggml_tensor * hidden = multiply(g, layer.lora_a, x);
        y = has_exact_scale(layer) ? add_product(g, y, layer.lora_b, ggml_scale(c, hidden, layer.lora_scale))
                                   : ggml_add(c, y, ggml_scale(c, multiply(g, layer.lora_b, hidden), layer.lora_scale));
    }
    return layer.bias ? ggml_add(c, y, layer.bias) : y;
}

ggml_tensor * linear_backward(Graph & g, const Linear & layer, ggml_tensor * x, ggml_tensor * dy, InputGradient input) {
    ggml_context * c = g.ctx();
    if (layer.d_weight) accumulate_outer(g, x, dy, layer.d_weight);
    if (layer.d_bias) g.accumulate(repeat_backward(g, dy, layer.bias), layer.d_bias);
    ggml_tensor * dx = input.wanted ? add_transposed(g, input.sum, layer.weight, dy) : nullptr;
    if (layer.lora_a) {
        ggml_tensor * d_hidden =
            ggml_scale(c, multiply_transposed(g, layer.lora_b, dy), layer.lora_scale);  // [rank, T]
        if (layer.d_lora_b)
            accumulate_outer(g, ggml_scale(c, multiply(g, layer.lora_a, x), layer.lora_scale), dy, layer.d_lora_b);
        if (layer.d_lora_a) accumulate_outer(g, x, d_hidden, layer.d_lora_a);
        if (dx) dx = add_transposed(g, dx, layer.lora_a, d_hidden);
    }
    return dx;
}

ggml_tensor * norm_forward(Graph & g, const Norm & norm, ggml_tensor * x, float epsilon) {
    return ggml_mul(g.ctx(), ggml_rms_norm(g.ctx(), x, epsilon), norm.weight);
}

ggml_tensor * norm_backward(Graph & g, const Norm & norm, ggml_tensor * x, ggml_tensor * dy, float epsilon) {
    ggml_context * c = g.ctx();
    if (norm.d_weight) {
        ggml_tensor * products = ggml_mul(c, dy, ggml_rms_norm(c, x, epsilon));
        g.accumulate(repeat_backward(g, products, norm.weight), norm.d_weight);
    }
    return rms_norm_backward(g, ggml_mul(c, dy, norm.weight), x, epsilon);
}

}  // namespace cria
