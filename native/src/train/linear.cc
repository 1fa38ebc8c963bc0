#include "train/linear.h"

#include "train/matmul.h"

namespace cria {

ggml_tensor * linear_forward(Graph & g, const Linear & layer, ggml_tensor * x, bool adapter) {
    ggml_context * c = g.ctx();
    ggml_tensor * y = multiply_weight(g, layer.weight, x);
    if (adapter && layer.lora_a) {
        ggml_tensor * ab = multiply(g, layer.lora_b, multiply(g, layer.lora_a, x));
        y = ggml_add(c, y, ggml_scale(c, ab, layer.lora_scale));
    }
    return layer.bias ? ggml_add(c, y, layer.bias) : y;
}

ggml_tensor * linear_backward(Graph & g, const Linear & layer, ggml_tensor * x, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    if (layer.d_weight) accumulate_outer(g, x, dy, layer.d_weight);
    if (layer.d_bias) g.accumulate(ggml_repeat_back(c, dy, layer.bias), layer.d_bias);
    ggml_tensor * dx = multiply_transposed(g, layer.weight, dy);
    if (layer.lora_a) {
        ggml_tensor * scaled = ggml_scale(c, dy, layer.lora_scale);
        ggml_tensor * hidden = multiply(g, layer.lora_a, x);                    // [rank, T]
        ggml_tensor * d_hidden = multiply_transposed(g, layer.lora_b, scaled);      // [rank, T]
        if (layer.d_lora_b) accumulate_outer(g, hidden, scaled, layer.d_lora_b);
        if (layer.d_lora_a) accumulate_outer(g, x, d_hidden, layer.d_lora_a);
        dx = ggml_add(c, dx, multiply_transposed(g, layer.lora_a, d_hidden));
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
        g.accumulate(ggml_repeat_back(c, products, norm.weight), norm.d_weight);
    }
    return ggml_rms_norm_back(c, ggml_mul(c, dy, norm.weight), x, epsilon);
}

}  // namespace cria
