#include "train/experts.h"

#include <algorithm>
#include <cmath>

#include "cpu/expert_products.h"
#include "cpu/tensor_products.h"
#include "train/gate.h"
#include "train/linear.h"

namespace cria {

namespace {

// llama.cpp's bound of the sum that weights are divided by. No softmax over its experts comes near it.
constexpr float kLeastSum = 6.103515625e-5f;

float * column(const ggml_tensor * t, int64_t i) { return static_cast<float *>(t->data) + i * floats(t->nb[1]); }

// The sum over each token's rows [n, R] -> [n, T], times their weights [used, T] where given. Added up as llama.cpp
// does: one choice after the other, each product rounded.
ggml_tensor * sum_choices(Graph & g, ggml_tensor * rows, int64_t used, ggml_tensor * weights) {
    std::vector<ggml_tensor *> inputs = {rows};
    if (weights) inputs.push_back(weights);
    return g.custom(
        {rows->ne[0], rows->ne[1] / used}, inputs, [used](ggml_tensor * node, int thread, int threads, Compute &) {
        const ggml_tensor *rows = node->src[0], *weights = node->src[1];
        const int64_t n = node->ne[0];
        for (int64_t token = thread; token < node->ne[1]; token += threads) {
            float * out = column(node, token);
            for (int64_t choice = 0; choice < used; choice++) {
                const float * in = column(rows, token * used + choice);
                const float weight = weights ? column(weights, token)[choice] : 1.0f;
                if (choice == 0)
                    for (int64_t i = 0; i < n; i++) out[i] = in[i] * weight;
                else
                    for (int64_t i = 0; i < n; i++) out[i] += in[i] * weight;
            }
        }
    });
}

// Rows [n, R] times the weights of their choices.
ggml_tensor * weigh_rows(Graph & g, ggml_tensor * rows, ggml_tensor * weights) {
    return ggml_mul(g.ctx(), rows, ggml_reshape_2d(g.ctx(), weights, 1, rows->ne[1]));
}

double dot(const float * a, const float * b, int64_t n) {
    double sums[4] = {};
    for (int64_t i = 0; i < n; i++) sums[i % 4] += double(a[i]) * double(b[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The gradient of the router's logits [experts, T]. Weights are the softmax over the logits of the chosen experts, and
// the gradient of a weight is the product of an expert's inner values [ff, R] with their gradient before the weight,
// and of its bias [d, experts], which may be null, with dy [d, T].
ggml_tensor * route_backward(Graph & g, const ExpertState & s, int64_t experts, ggml_tensor * d_unweighted,
    ggml_tensor * bias, ggml_tensor * dy) {
    std::vector<ggml_tensor *> inputs = {s.weights, s.mid, d_unweighted, s.choice.rows};
    if (bias) inputs.insert(inputs.end(), {bias, dy});
    return g.custom({experts, s.weights->ne[1]}, inputs, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const ggml_tensor *weights = node->src[0], *mid = node->src[1], *d_mid = node->src[2], *bias = node->src[4],
                          *dy = node->src[5];
        const int64_t used = weights->ne[0], experts = node->ne[0];
        const ExpertRows rows = read_rows(static_cast<const int32_t *>(node->src[3]->data), experts, mid->ne[1]);
        for (int64_t token = thread; token < node->ne[1]; token += threads) {
            const float * w = column(weights, token);
            float * out = column(node, token);
            std::fill_n(out, experts, 0.0f);
            const auto d_weight = [&](int64_t choice) {
                const int64_t row = token * used + choice;
                const double product = dot(column(mid, row), column(d_mid, row), mid->ne[0]);
                return bias ? product + dot(column(bias, rows.experts_of[row]), column(dy, token), bias->ne[0])
                            : product;
            };
            double mean = 0.0;
            for (int64_t choice = 0; choice < used; choice++) {
                float & d_logit = out[rows.experts_of[token * used + choice]];
                d_logit = float(d_weight(choice));
                mean += double(w[choice]) * double(d_logit);
            }
            for (int64_t choice = 0; choice < used; choice++) {
                float & d_logit = out[rows.experts_of[token * used + choice]];
                d_logit = w[choice] * float(double(d_logit) - mean);
            }
        }
    });
}

}  // namespace

ggml_tensor * experts_forward(
    Graph & g, const Architecture & arch, const ExpertParameters & p, ggml_tensor * x, bool adapter, ExpertState & s) {
    ggml_context * c = g.ctx();
    const int64_t experts = p.router.weight->ne[1], used = arch.experts_used, T = x->ne[1];

    // By llama.cpp's operations, so that equal probabilities are ordered as there.
    const bool divides = arch.gating == ExpertGating::divided_softmax;
    ggml_tensor * logits = linear_forward(g, p.router, x, adapter);
    ggml_tensor * ranked = divides ? ggml_soft_max(c, logits) : logits;
    ggml_tensor * chosen = ggml_argsort_top_k(c, ranked, int(used));
    ggml_tensor * weights = ggml_get_rows(c, ggml_reshape_3d(c, ranked, 1, experts, T), chosen);
    weights = ggml_reshape_2d(c, weights, used, T);
    s.weights = divides ? ggml_div(c, weights, ggml_clamp(c, ggml_sum_rows(c, weights), kLeastSum, INFINITY))
                        : ggml_soft_max(c, weights);
    s.choice = {chosen, group_by_expert(g, chosen, experts)};

    s.up = expert_linear_forward(g, p.up, s.choice, x, adapter);
    s.gate = expert_linear_forward(g, p.gate, s.choice, x, adapter);
    s.mid = gate_forward(g, arch.activation, s.gate, s.up);
    return sum_choices(g, expert_linear_forward(g, p.down, s.choice, s.mid, adapter), used, s.weights);
}

ggml_tensor * experts_backward(Graph & g, const Architecture & arch, const ExpertParameters & p, const ExpertState & s,
    ggml_tensor * x, ggml_tensor * dy) {
    // An expert's output is weighted behind `down`. The products here take the weight before it, so that a token has
    // one dy for all of its experts, and the gradient of the weight needs no outputs.
    const Linear & down = p.down;
    const bool trains_down = down.d_weight || down.d_lora_a || down.d_lora_b;
    ggml_tensor * d_unweighted =
        expert_linear_backward(g, down, s.choice, trains_down ? weigh_rows(g, s.mid, s.weights) : s.mid, dy);
    ggml_tensor * d_logits = route_backward(g, s, p.router.weight->ne[1], d_unweighted, down.bias, dy);
    const GateGradient d = gate_backward(g, arch.activation, s.gate, s.up, weigh_rows(g, d_unweighted, s.weights));
    expert_bias_backward(g, down, s.choice, dy, s.weights);
    expert_bias_backward(g, p.gate, s.choice, d.gate);
    expert_bias_backward(g, p.up, s.choice, d.up);
    ggml_tensor * d_rows = expert_linear_backward(g, p.gate, s.choice, x, d.gate);
    d_rows = expert_linear_backward(g, p.up, s.choice, x, d.up, d_rows);
    ggml_tensor * dx = sum_choices(g, d_rows, s.weights->ne[0], nullptr);
    return linear_backward(g, p.router, x, d_logits, {dx});
}

}  // namespace cria
