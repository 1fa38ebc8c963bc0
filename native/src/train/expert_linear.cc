#include "train/expert_linear.h"

#include <algorithm>
#include <memory>

#include "cpu/expert_products.h"
#include "cpu/shared_range.h"
#include "cpu/tensor_products.h"

namespace cria {

namespace {

// Narrower pieces copy all rows for too little work.
constexpr int64_t kLeastColumns = 64;

int64_t count_rows(const ggml_tensor * chosen) { return chosen->ne[0] * chosen->ne[1]; }

ExpertRows rows_in(const ggml_tensor * node, int64_t experts) {
    return read_rows(static_cast<const int32_t *>(node->data), experts, (ggml_nelements(node) - experts - 1) / 2);
}

// One vector for each of `count` rows, or fewer that some share.
RowVectors vectors(const ggml_tensor * t, int64_t count) {
    return {static_cast<float *>(t->data), floats(t->nb[1]), count / t->ne[1]};
}

// Hands out pieces of all experts' columns to threads: (expert, first column, last).
class SharedPieces {
   public:
    SharedPieces(int64_t experts, int64_t columns, int64_t unit, int threads)
        : columns_(columns), unit_(std::max(unit, kLeastColumns)),
          parts_(std::clamp<int64_t>((8 * threads + experts - 1) / experts, 1, (columns + unit_ - 1) / unit_)),
          range_(experts * parts_, 1) {}

    template <typename Work>
    void take_all(int threads, const Work & work) {
        for (int64_t begin, end; range_.take(threads, begin, end);) {
            for (int64_t piece = begin; piece < end; piece++) {
                const int64_t part = piece % parts_;
                work(piece / parts_, part_begin(columns_, unit_, part, parts_),
                    part_begin(columns_, unit_, part + 1, parts_));
            }
        }
    }

   private:
    const int64_t columns_, unit_, parts_;
    SharedRange range_;
};

// Inputs of the node: (the sum,) W, x and the rows.
ggml_tensor * multiply_rows(
    Graph & g, const ExpertChoice & choice, ggml_tensor * w, bool transposed, ggml_tensor * x, ggml_tensor * sum) {
    const int64_t columns = w->ne[transposed ? 0 : 1];
    const auto pieces = std::make_shared<SharedPieces>(
        w->ne[2], columns, expert_column_unit({w, transposed, {}, {}, false}), g.threads());
    const bool accumulate = sum != nullptr;
    const Graph::Work work = [pieces, transposed, accumulate](
                                 ggml_tensor * node, int thread, int threads, Compute & compute) {
        ggml_tensor * const * inputs = node->src + (accumulate ? 1 : 0);
        const ExpertRows rows = rows_in(inputs[2], inputs[0]->ne[2]);
        const ExpertProduct product{
            inputs[0], transposed, vectors(inputs[1], rows.count), vectors(node, rows.count), accumulate};
        pieces->take_all(threads, [&](int64_t expert, int64_t begin, int64_t end) {
            run_expert_product(product, rows, expert, begin, end, compute.workspace(thread).gemm);
        });
    };
    const std::vector<ggml_tensor *> inputs = {w, x, choice.rows};
    return sum ? g.custom_inplace(sum, inputs, work) : g.custom({columns, count_rows(choice.experts)}, inputs, work);
}

ggml_tensor * multiply_forward(Graph & g, const ExpertChoice & choice, ggml_tensor * w, ggml_tensor * x) {
    if (has_own_expert_product(w)) return multiply_rows(g, choice, w, false, x, nullptr);
    const int64_t tokens = choice.experts->ne[1];
    ggml_tensor * rows = ggml_reshape_3d(g.ctx(), x, x->ne[0], x->ne[1] / tokens, tokens);
    ggml_tensor * y = ggml_mul_mat_id(g.ctx(), w, rows, choice.experts);
    return ggml_reshape_2d(g.ctx(), y, y->ne[0], y->ne[1] * y->ne[2]);
}

// target [in, out, experts] += the gradient of the matrices in y = W x.
void accumulate_rows(Graph & g, const ExpertChoice & choice, ggml_tensor * x, ggml_tensor * dy, ggml_tensor * target) {
    const auto pieces =
        std::make_shared<SharedPieces>(target->ne[2], target->ne[0], gemm_column_unit(GGML_TYPE_F32), g.threads());
    g.expand(g.custom_inplace(
        g.ref(target), {x, dy, choice.rows}, [pieces](ggml_tensor * node, int thread, int threads, Compute & compute) {
        const ExpertRows rows = rows_in(node->src[3], node->ne[2]);
        const RowVectors x = vectors(node->src[1], rows.count), dy = vectors(node->src[2], rows.count);
        pieces->take_all(threads, [&](int64_t expert, int64_t begin, int64_t end) {
            add_expert_gradient(x, dy, rows, expert, node, begin, end, compute.workspace(thread).gemm);
        });
    }));
}

}  // namespace

ggml_tensor * group_by_expert(Graph & g, ggml_tensor * chosen, int64_t experts) {
    // Numbers in the memory of floats.
    ggml_tensor * rows = g.custom({expert_rows_size(experts, count_rows(chosen))}, {chosen},
        [experts](ggml_tensor * node, int thread, int, Compute &) {
        const ggml_tensor * chosen = node->src[0];
        if (thread == 0)
            group_rows(static_cast<const int32_t *>(chosen->data), int64_t(chosen->nb[1] / sizeof(int32_t)),
                chosen->ne[0], chosen->ne[1], experts, static_cast<int32_t *>(node->data));
    });
    g.expand(rows);  // the gradient reads it, even where ggml computes every product
    return rows;
}

ggml_tensor * expert_linear_forward(
    Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * x, bool adapter) {
    ggml_context * c = g.ctx();
    ggml_tensor * y = multiply_forward(g, choice, layer.weight, x);
    if (adapter && layer.lora_a) {
        ggml_tensor * added = multiply_forward(g, choice, layer.lora_b, multiply_forward(g, choice, layer.lora_a, x));
        y = ggml_add(c, y, ggml_scale(c, added, layer.lora_scale));
    }
    if (!layer.bias) return y;
    const int64_t out = y->ne[0], rows = y->ne[1], used = choice.experts->ne[0];
    y = ggml_add_id(c, ggml_reshape_3d(c, y, out, used, rows / used), layer.bias, choice.experts);
    return ggml_reshape_2d(c, y, out, rows);
}

void expert_bias_backward(
    Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * dy, ggml_tensor * weights) {
    if (!layer.d_bias) return;
    std::vector<ggml_tensor *> inputs = {dy, choice.rows};
    if (weights) inputs.push_back(weights);
    g.expand(g.custom_inplace(g.ref(layer.d_bias), inputs, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const int64_t experts = node->ne[1], n = node->ne[0];
        const ExpertRows rows = rows_in(node->src[2], experts);
        const RowVectors dy = vectors(node->src[1], rows.count);
        const float * weights = node->src[3] ? static_cast<const float *>(node->src[3]->data) : nullptr;
        // In the order of an expert's rows, by one thread.
        for (int64_t expert = thread; expert < experts; expert += threads) {
            float * sum = static_cast<float *>(node->data) + expert * floats(node->nb[1]);
            for (int64_t i = rows.begins[expert]; i < rows.begins[expert + 1]; i++) {
                const float * d = dy.at(rows.rows[i]);
                const float weight = weights ? weights[rows.rows[i]] : 1.0f;
                for (int64_t j = 0; j < n; j++) sum[j] += d[j] * weight;
            }
        }
    }));
}

ggml_tensor * expert_linear_backward(Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * x,
    ggml_tensor * dy, ggml_tensor * sum) {
    ggml_context * c = g.ctx();
    if (layer.d_weight) accumulate_rows(g, choice, x, dy, layer.d_weight);
    ggml_tensor * dx = multiply_rows(g, choice, layer.weight, true, dy, sum);
    if (!layer.lora_a) return dx;
    ggml_tensor * d_hidden =
        ggml_scale(c, multiply_rows(g, choice, layer.lora_b, true, dy, nullptr), layer.lora_scale);  // [rank, R]
    if (layer.d_lora_b) {
        ggml_tensor * hidden = ggml_scale(c, multiply_forward(g, choice, layer.lora_a, x), layer.lora_scale);
        accumulate_rows(g, choice, hidden, dy, layer.d_lora_b);
    }
    if (layer.d_lora_a) accumulate_rows(g, choice, x, d_hidden, layer.d_lora_a);
    return multiply_rows(g, choice, layer.lora_a, true, d_hidden, dx);
}

}  // namespace cria
