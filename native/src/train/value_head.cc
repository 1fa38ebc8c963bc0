#include "train/value_head.h"

#include "train/linear.h"

namespace cria {

void ValueHead::forward(Compute & compute, ggml_tensor * hidden, std::vector<float> & values) {
    if (!allocator_) allocator_ = compute.make_allocator();
    values.resize(size_t(hidden->ne[1]));
    TensorPool pool(1);
    ggml_tensor * out = pool.add(GGML_TYPE_F32, {1, hidden->ne[1]});
    pool.allocate(compute, "values");
    Graph g(compute);
    ggml_tensor * normed = norm_forward(g, parameters_.output_norm(), g.ref(hidden), arch_.norm_eps);
    g.write(linear_forward(g, *parameters_.value_head(), normed, false), out);
    g.run(allocator_.get());
    ggml_backend_tensor_get(out, values.data(), 0, values.size() * sizeof(float));
}

void ValueHead::backward(
    Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const std::vector<float> & d_values) {
    TensorPool pool(1);
    ggml_tensor * d_out = pool.add(GGML_TYPE_F32, {1, hidden->ne[1]});
    pool.allocate(compute, "values");
    ggml_backend_tensor_set(d_out, d_values.data(), 0, d_values.size() * sizeof(float));
    Graph g(compute);
    ggml_tensor * x = g.ref(hidden);
    ggml_tensor * normed = norm_forward(g, parameters_.output_norm(), x, arch_.norm_eps);
    ggml_tensor * d_normed = linear_backward(g, *parameters_.value_head(), normed, g.ref(d_out));
    g.write(norm_backward(g, parameters_.output_norm(), x, d_normed, arch_.norm_eps), d_hidden);
    g.run(allocator_.get());
}

}  // namespace cria
