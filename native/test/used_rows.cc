// Checks that products leave out the rows of a batch that are not used (UsedRows), for used-rows.test.ts: the rows that
// are used have the bits that they have in a whole product, and the others are zeros although what they are made of is
// not a number. Prints one line of JSON for each case.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/tensor_products.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"
#include "infer/own_products.h"

using namespace cria;

namespace {

constexpr int64_t kRows = 3;  // of a stream
const std::vector<int32_t> kUsed = {1, 3, 0, 2};  // by stream
constexpr int64_t kStreams = 4, kAll = kStreams * kRows;

bool is_used(int64_t row) { return row % kRows < kUsed[size_t(row / kRows)]; }

// Tensors of a graph that is computed node by node, by this thread alone in the roles of all threads.
class Graph {
   public:
    explicit Graph(int threads) : threads_(threads), products_(threads, true) {}
    ~Graph() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }
    Graph(const Graph &) = delete;
    Graph & operator=(const Graph &) = delete;

    ggml_context * context() const { return context_; }
    OwnProducts & products() { return products_; }
    void allocate() { buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, ggml_backend_cpu_buffer_type()); }
    // Returns whether the node is computed by us.
    bool run(ggml_tensor * node) {
        OwnProducts::on_node(node, true, &products_);
        if (node->op != GGML_OP_CUSTOM) return false;
        ggml_custom_op_params params;
        std::memcpy(&params, node->op_params, sizeof params);
        for (int thread = 0; thread < threads_; thread++) params.fun(node, thread, threads_, params.userdata);
        return true;
    }

   private:
    int threads_;
    OwnProducts products_;
    ggml_context * context_ = ggml_init({size_t(64) << 10, nullptr, true});
    ggml_backend_buffer_t buffer_ = nullptr;
};

std::vector<float> draw(int64_t count, unsigned seed) {
    std::mt19937 bits(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float & value : values) value = float(bits() >> 8) / 8388608.0f - 1.0f;
    return values;
}

void fill(ggml_tensor * t, const std::vector<float> & values) {
    if (t->type == GGML_TYPE_F32) std::memcpy(t->data, values.data(), ggml_nbytes(t));
    else ggml_quantize_chunk(t->type, values.data(), t->data, 0, ggml_nrows(t), t->ne[0], nullptr);
}

void report(const std::string & name, const std::string & problem) {
    std::printf("{\"name\": \"%s\", \"problem\": \"%s\"}\n", name.c_str(), problem.c_str());
}

enum class Others { zeros, anything };

// Compares rows of `n` values.
std::string compare(const float * some, const float * whole, int64_t n, Others others) {
    for (int64_t row = 0; row < kAll; row++) {
        const float * const mine = some + row * n;
        if (is_used(row) && std::memcmp(mine, whole + row * n, size_t(n) * sizeof(float)) != 0)
            return "row " + std::to_string(row) + " differs";
        if (!is_used(row) && others == Others::zeros && std::any_of(mine, mine + n, [](float v) { return v != 0.0f; }))
            return "row " + std::to_string(row) + " is not zero";
    }
    return "";
}

// Rows times a weight of n columns, of which some rows are not numbers.
void check_weight(ggml_type type, int64_t n, int threads, bool is_output) {
    const int64_t k = 256;
    Graph graph(threads);
    ggml_tensor * const w = ggml_new_tensor_2d(graph.context(), type, k, n);
    ggml_tensor * const x = ggml_new_tensor_2d(graph.context(), GGML_TYPE_F32, k, kAll);
    ggml_tensor * const whole = ggml_mul_mat(graph.context(), w, x);
    ggml_tensor * const some = ggml_mul_mat(graph.context(), w, x);
    ggml_tensor * const few = ggml_mul_mat(graph.context(), w, ggml_view_2d(graph.context(), x, k, kRows, x->nb[1], 0));
    graph.allocate();
    ggml_backend_buffer_set_usage(w->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill(w, draw(k * n, 1));
    std::vector<float> rows = draw(k * kAll, 2);
    fill(x, rows);
    if (is_output) ggml_set_output(some);
    const std::string name = std::string(ggml_type_name(type)) + ", " + std::to_string(n) + " columns, " +
                             std::to_string(threads) + " threads" + (is_output ? ", the graph's output" : "");
    if (!graph.run(whole)) return report(name, "not computed by our products");
    for (int64_t row = 0; row < kAll; row++) {
        if (!is_used(row)) std::fill_n(rows.begin() + row * k, k, NAN);
    }
    fill(x, rows);
    std::fill_n(static_cast<float *>(some->data), kAll * n, NAN);
    {
        const UsedRows used(graph.products(), {kRows, kUsed});
        graph.run(some);
        graph.run(few);
    }
    const auto * const values = static_cast<const float *>(some->data);
    std::string problem =
        compare(values, static_cast<float *>(whole->data), n, is_output ? Others::anything : Others::zeros);
    // Rows 1 and 2 are computed too where the product has another number of rows.
    if (problem.empty() && !std::isnan(static_cast<float *>(few->data)[n])) problem = "few rows were left out";
    if (problem.empty()) {
        graph.run(some);
        if (!std::isnan(values[n])) problem = "rows are left out after the batch";
    }
    report(name, problem);
}

// Attention of heads that share keys, each token over the cells up to its own.
void check_attention(int threads) {
    const int64_t size = 16, cells = 24, heads = 4, kv_heads = 2;
    Graph graph(threads);
    ggml_context * const c = graph.context();
    ggml_tensor * const keys = ggml_new_tensor_4d(c, GGML_TYPE_F32, size, kv_heads, cells, kStreams);
    ggml_tensor * const values = ggml_new_tensor_4d(c, GGML_TYPE_F32, cells, size, kv_heads, kStreams);
    ggml_tensor * const queries = ggml_new_tensor_4d(c, GGML_TYPE_F32, size, heads, kRows, kStreams);
    ggml_tensor * const mask = ggml_new_tensor_4d(c, GGML_TYPE_F32, cells, kRows, 1, kStreams);
    const auto attend = [&] {
        ggml_tensor * const scores =
            ggml_mul_mat(c, ggml_permute(c, keys, 0, 2, 1, 3), ggml_permute(c, queries, 0, 2, 1, 3));
        ggml_tensor * const weights = ggml_soft_max_ext(c, scores, mask, 0.25f, 0.0f);
        ggml_tensor * const mixed = ggml_mul_mat(c,
            ggml_view_4d(c, values, cells, size, kv_heads, kStreams, values->nb[1], values->nb[2], values->nb[3], 0),
            weights);
        return std::vector<ggml_tensor *>{scores, weights, mixed};
    };
    const auto whole = attend(), some = attend();
    graph.allocate();
    fill(keys, draw(ggml_nelements(keys), 3));
    fill(values, draw(ggml_nelements(values), 4));
    std::vector<float> asked = draw(ggml_nelements(queries), 5), hides(size_t(ggml_nelements(mask)), 0.0f);
    for (int64_t row = 0; row < kAll; row++) {
        const int64_t seen = 9 + 2 * (row / kRows) + row % kRows;
        std::fill(hides.begin() + row * cells + seen, hides.begin() + (row + 1) * cells, -INFINITY);
    }
    fill(queries, asked);
    fill(mask, hides);
    const std::string name = "attention, " + std::to_string(threads) + " threads";
    for (ggml_tensor * node : whole) {
        if (!graph.run(node)) return report(name, "not computed by our products");
    }
    for (int64_t row = 0; row < kAll; row++) {
        if (!is_used(row)) std::fill_n(asked.begin() + row * size * heads, size * heads, NAN);
    }
    fill(queries, asked);
    for (ggml_tensor * node : some) std::fill_n(static_cast<float *>(node->data), ggml_nelements(node), NAN);
    {
        const UsedRows used(graph.products(), {kRows, kUsed});
        for (ggml_tensor * node : some) graph.run(node);
    }
    // By rows: [size, rows, heads, streams] becomes [heads x size] for each row.
    const auto by_rows = [&](const ggml_tensor * t) {
        std::vector<float> result;
        for (int64_t row = 0; row < kAll; row++) {
            for (int64_t head = 0; head < heads; head++) {
                const auto * from =
                    static_cast<const float *>(t->data) + ((row / kRows * heads + head) * kRows + row % kRows) * size;
                result.insert(result.end(), from, from + size);
            }
        }
        return result;
    };
    report(name, compare(by_rows(some[2]).data(), by_rows(whole[2]).data(), heads * size, Others::zeros));
}

}  // namespace

int main() {
    for (const int threads : {1, 2, 3}) {
        for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K}) {
            if (!has_own_product(type)) continue;
            for (const int64_t n : {int64_t(8), int64_t(20), int64_t(272), int64_t(1100)})
                check_weight(type, n, threads, false);
            check_weight(type, 1100, threads, true);
        }
        check_attention(threads);
    }
}
