#include "train/backward.h"

#include <vector>

#include "train/matmul.h"

namespace cria {

namespace {

// The mean of each row of a * b, [1, ...].
ggml_tensor * mean_products(Graph & g, ggml_tensor * a, ggml_tensor * b) {
    ggml_context * c = g.ctx();
    return ggml_scale(c, ggml_sum_rows(c, ggml_mul(c, a, b)), 1.0f / float(a->ne[0]));
}

void add_on_host(const ggml_tensor * d, const ggml_tensor * columns, ggml_tensor * target) {
    const size_t width = size_t(d->ne[0]), bytes = width * sizeof(float);
    std::vector<int32_t> to(size_t(columns->ne[0]));
    ggml_backend_tensor_get(columns, to.data(), 0, to.size() * sizeof(int32_t));
    std::vector<float> given(width * to.size()), sum(width);
    ggml_backend_tensor_get(d, given.data(), 0, given.size() * sizeof(float));
    for (size_t i = 0; i < to.size(); i++) {
        const size_t offset = size_t(to[i]) * target->nb[1];
        ggml_backend_tensor_get(target, sum.data(), offset, bytes);
        for (size_t j = 0; j < width; j++) sum[j] += given[i * width + j];
        ggml_backend_tensor_set(target, sum.data(), offset, bytes);
    }
}

}  // namespace

ggml_tensor * soft_max_backward(Graph & g, ggml_tensor * d_probs, ggml_tensor * probs, float scale) {
    ggml_context * c = g.ctx();
    ggml_tensor * whole = ggml_soft_max_ext_back(c, d_probs, probs, scale, 0.0f);
    if (g.supports(whole)) return whole;
    ggml_tensor * mean = ggml_sum_rows(c, ggml_mul(c, probs, d_probs));
    return ggml_scale(c, ggml_mul(c, probs, ggml_sub(c, d_probs, mean)), scale);
}

ggml_tensor * rms_norm_backward(Graph & g, ggml_tensor * dy, ggml_tensor * x, float epsilon) {
    ggml_context * c = g.ctx();
    ggml_tensor * whole = ggml_rms_norm_back(c, dy, x, epsilon);
    if (g.supports(whole)) return whole;
    // (dy - n mean(n dy)) / rms, with n the normed x
    ggml_tensor * rms = ggml_sqrt(c, ggml_scale_bias(c, mean_products(g, x, x), 1.0f, epsilon));
    ggml_tensor * normed = ggml_div(c, x, rms);
    return ggml_div(c, ggml_sub(c, dy, ggml_mul(c, normed, mean_products(g, normed, dy))), rms);
}

ggml_tensor * silu_backward(Graph & g, ggml_tensor * dy, ggml_tensor * x) {
    ggml_context * c = g.ctx();
    ggml_tensor * whole = ggml_silu_back(c, dy, x);
    if (g.supports(whole)) return whole;
    // silu' = s (1 + x (1 - s)) with s the sigmoid
    ggml_tensor * sigmoid = ggml_sigmoid(c, x);
    ggml_tensor * slope = ggml_mul(c, x, ggml_scale_bias(c, sigmoid, -1.0f, 1.0f));
    return ggml_mul(c, dy, ggml_mul(c, sigmoid, ggml_scale_bias(c, slope, 1.0f, 1.0f)));
}

ggml_tensor * repeat_backward(Graph & g, ggml_tensor * dy, ggml_tensor * vector) {
    ggml_context * c = g.ctx();
    ggml_tensor * whole = ggml_repeat_back(c, dy, vector);
    if (g.supports(whole)) return whole;
    const int64_t n = vector->ne[0];
    ggml_tensor * rows = ggml_reshape_2d(c, contiguous(g, dy), n, ggml_nelements(dy) / n);
    return ggml_reshape_1d(c, ggml_sum_rows(c, ggml_cont(c, ggml_transpose(c, rows))), n);
}

ggml_tensor * get_rows_backward(Graph & g, ggml_tensor * d, ggml_tensor * columns, ggml_tensor * matrix) {
    ggml_context * c = g.ctx();
    ggml_tensor * whole = ggml_get_rows_back(c, d, columns, matrix);
    if (g.supports(whole)) return whole;
    // d P^T, where column t of P [N, T] is 1 at columns[t] alone.
    ggml_tensor * ones = ggml_scale_bias(c, ggml_arange(c, 0.0f, float(matrix->ne[1]), 1.0f), 0.0f, 1.0f);
    return outer_sum(g, d, ggml_get_rows(c, ggml_diag(c, ones), columns));
}

void add_picked_columns(
    Compute & compute, ggml_gallocr_t allocator, ggml_tensor * d, ggml_tensor * columns, ggml_tensor * target) {
    Graph g(compute);
    ggml_tensor * sum = ggml_get_rows_back(g.ctx(), g.ref(d), g.ref(columns), g.ref(target));
    if (g.supports(sum)) {
        g.accumulate(sum, target);
        g.run(allocator);
    } else if (!compute.only_ask) {
        add_on_host(d, columns, target);
    }
}

}  // namespace cria
