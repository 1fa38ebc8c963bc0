#include "train/state_rule.h"

namespace cria {

namespace {

float * floats(const ggml_tensor * t) { return static_cast<float *>(t->data); }

StateVectors<const float> vectors(const ggml_tensor * t, int axis) {
    return {floats(t), int64_t(t->nb[axis] / sizeof(float))};
}

StateTensors describe(const ggml_tensor * node) {
    return {vectors(node->src[0], 2), vectors(node->src[1], 2), vectors(node->src[2], 2), vectors(node->src[3], 1),
        vectors(node->src[4], 1)};
}

// The columns of one of the gradients within their node.
class Columns {
   public:
    Columns(Graph & g, ggml_tensor * all, int64_t width, int64_t tokens)
        : g_(g), all_(all), width_(size_t(width) * sizeof(float)), tokens_(tokens) {}
    ggml_tensor * heads(int64_t first, int64_t size, int64_t count) const {
        ggml_tensor * view = ggml_view_3d(
            g_.ctx(), all_, size, count, tokens_, size_t(size) * sizeof(float), width_, size_t(first) * sizeof(float));
        return ggml_cont(g_.ctx(), view);
    }
    ggml_tensor * numbers(int64_t first, int64_t count) const {
        ggml_tensor * view = ggml_view_2d(g_.ctx(), all_, count, tokens_, width_, size_t(first) * sizeof(float));
        return ggml_cont(g_.ctx(), view);
    }
    ggml_tensor * sum_parts(int64_t first, const StateShape & s) const {
        ggml_tensor * sum = heads(first, s.key_size, s.key_heads);
        for (int64_t part = 1; part < s.parts(); part++)
            sum = ggml_add(g_.ctx(), sum, heads(first + part * s.keys(), s.key_size, s.key_heads));
        return sum;
    }

   private:
    Graph & g_;
    ggml_tensor * all_;
    size_t width_;
    int64_t tokens_;
};

}  // namespace

ggml_tensor * state_rule_forward(Graph & g, const StateShape & shape, const StatePlan & plan, const StateRule & r) {
    const int64_t outputs = shape.values() * r.v->ne[2];
    return g.custom({outputs + shape.floats() * shape.value_heads * plan.states}, {r.q, r.k, r.v, r.log_decay, r.beta},
        [&plan, shape, outputs](ggml_tensor * node, int thread, int threads, Compute &) {
        run_state_rule(
            plan, shape, describe(node), {floats(node), shape.values()}, floats(node) + outputs, thread, threads);
    });
}

ggml_tensor * view_outputs(Graph & g, const StateShape & s, ggml_tensor * node, int64_t tokens) {
    const size_t head = size_t(s.value_size) * sizeof(float);
    return ggml_view_3d(g.ctx(), node, s.value_size, s.value_heads, tokens, head, head * size_t(s.value_heads), 0);
}

StateRule state_rule_backward(Graph & g, const StateShape & s, const StatePlan & plan, const StateRule & r,
    ggml_tensor * node, ggml_tensor * d_outputs) {
    // Columns of gradients by q, k, v, log_decay and beta, and behind them memory of each thread.
    const int64_t T = r.v->ne[2], keys = s.keys() * s.parts(), numbers = 2 * keys + s.values(),
                  width = numbers + 2 * s.value_heads, scratch = state_scratch(plan, s);
    ggml_tensor * all =
        g.custom({width * T + scratch * g.threads()}, {r.q, r.k, r.v, r.log_decay, r.beta, node, d_outputs},
            [&plan, s, T, keys, numbers, width, scratch](ggml_tensor * node, int thread, int threads, Compute &) {
        const auto part = [&](int64_t first) { return StateVectors<float>{floats(node) + first, width}; };
        run_state_gradient(plan, s, describe(node), floats(node->src[5]) + s.values() * T, vectors(node->src[6], 2),
            {part(0), part(keys), part(2 * keys), part(numbers), part(numbers + s.value_heads)},
            floats(node) + width * T + scratch * thread, thread, threads);
    });
    const Columns columns(g, all, width, T);
    return {columns.sum_parts(0, s), columns.sum_parts(keys, s), columns.heads(2 * keys, s.value_size, s.value_heads),
        columns.numbers(numbers, s.value_heads), columns.numbers(numbers + s.value_heads, s.value_heads)};
}

StateDecay make_decay(Graph & g, ggml_tensor * alpha, ggml_tensor * rate) {
    ggml_tensor * step = ggml_softplus(g.ctx(), alpha);
    return {step, ggml_mul(g.ctx(), step, rate)};
}

}  // namespace cria
