#include "train/weight_products.h"

#include <algorithm>
#include <memory>

#include "cpu/shared_range.h"
#include "cpu/tensor_products.h"
#include "train/matmul.h"

namespace cria {

namespace {

// Narrower pieces read all rows for too little work.
constexpr int64_t kLeastColumns = 64;

std::shared_ptr<SharedRange> share_columns(int64_t columns, int64_t unit) {
    return std::make_shared<SharedRange>(columns, std::max(kLeastColumns, unit));
}

// x rounded for integer products; products with the same x share it.
ggml_tensor * round_to_integers(Graph & g, ggml_tensor * w, bool transposed, ggml_tensor * x) {
    const bool as_q8 = !transposed && w->type == GGML_TYPE_Q8_0;
    return g.once(x, as_q8 ? Derived::q8 : Derived::integers, [&] {
        const int64_t panels = (x->ne[1] + kRoundedRows - 1) / kRoundedRows;
        return g.custom({rounded_size(x->ne[0]), panels * kRoundedRows}, {x, w},
            [transposed, panels](ggml_tensor * node, int thread, int threads, Compute & compute) {
            const IntegerGemm gemm = describe_integer_product(node->src[1], transposed, node->src[0], nullptr, false);
            const int64_t begin = panels * thread / threads * kRoundedRows,
                          end = panels * (thread + 1) / threads * kRoundedRows;
            round_rows(gemm, begin, end, static_cast<float *>(node->data), compute.workspace(thread).gemm.integers);
        });
    });
}

// Inputs of the node: (the sum,) W, x and the rounded x.
ggml_tensor * multiply_in_integers(Graph & g, ggml_tensor * w, bool transposed, ggml_tensor * x, ggml_tensor * sum) {
    const int64_t columns = w->ne[transposed ? 0 : 1];
    const auto shared =
        share_columns(columns, integer_column_unit(describe_integer_product(w, transposed, x, nullptr, false)));
    const bool accumulate = sum != nullptr;
    const Graph::Work work = [shared, transposed, accumulate](
                                 ggml_tensor * node, int thread, int threads, Compute & compute) {
        ggml_tensor * const * inputs = node->src + (accumulate ? 1 : 0);
        const IntegerGemm gemm = describe_integer_product(inputs[0], transposed, inputs[1], node, accumulate);
        for (int64_t begin, end; shared->take(threads, begin, end);) {
            run_integer_columns(
                gemm, static_cast<const float *>(inputs[2]->data), begin, end, compute.workspace(thread).gemm.integers);
        }
    };
    const std::vector<ggml_tensor *> inputs = {w, x, round_to_integers(g, w, transposed, x)};
    return sum ? g.custom_inplace(sum, inputs, work) : g.custom({columns, x->ne[1]}, inputs, work);
}

ggml_tensor * multiply_in_floats(Graph & g, ggml_tensor * w, bool transposed, ggml_tensor * x, ggml_tensor * sum) {
    const int64_t columns = w->ne[transposed ? 0 : 1];
    const auto shared = share_columns(columns, gemm_column_unit(w->type));
    const bool accumulate = sum != nullptr;
    const Graph::Work work = [shared, transposed, accumulate](
                                 ggml_tensor * node, int thread, int threads, Compute & compute) {
        ggml_tensor * const * inputs = node->src + (accumulate ? 1 : 0);
        const Gemm gemm = describe_product(inputs[0], transposed, inputs[1], node, accumulate);
        GemmWorkspace & workspace = compute.workspace(thread).gemm;
        if (!has_shared_columns(gemm, threads)) return run_gemm(gemm, thread, threads, workspace);
        for (int64_t begin, end; shared->take(threads, begin, end);) run_gemm_columns(gemm, begin, end, workspace);
    };
    return sum ? g.custom_inplace(sum, {w, x}, work) : g.custom({columns, x->ne[1]}, {w, x}, work);
}

// Converts to F32 by picking all rows: CUDA copies between few types, but picks rows of any type.
ggml_tensor * dequantize(Graph & g, ggml_tensor * w) {
    ggml_context * c = g.ctx();
    return ggml_get_rows(c, w, ggml_cast(c, ggml_arange(c, 0.0f, float(w->ne[1]), 1.0f), GGML_TYPE_I32));
}

// For devices whose products need W^T as a plain F32 matrix. An LM head of 150,000 rows would take half a gigabyte, so
// it is processed in blocks of rows.
ggml_tensor * multiply_transposed_in_blocks(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    constexpr int64_t kBlock = 16384;
    ggml_tensor * dx = nullptr;
    for (int64_t begin = 0; begin < w->ne[1]; begin += kBlock) {
        const int64_t count = std::min(kBlock, w->ne[1] - begin);
        const bool whole = count == w->ne[1];
        ggml_tensor * rows = whole ? w : ggml_view_2d(c, w, w->ne[0], count, w->nb[1], size_t(begin) * w->nb[1]);
        ggml_tensor * part =
            whole ? dy : ggml_cont(c, ggml_view_2d(c, dy, count, dy->ne[1], dy->nb[1], size_t(begin) * dy->nb[0]));
        if (rows->type != GGML_TYPE_F32) rows = dequantize(g, rows);
        ggml_tensor * product = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, rows)), part);
        dx = dx ? ggml_add(c, dx, product) : product;
    }
    return dx;
}

bool is_kernel_type(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
        case GGML_TYPE_Q8_0:
        case GGML_TYPE_Q4_0:
        case GGML_TYPE_Q4_1:
        case GGML_TYPE_Q5_0:
        case GGML_TYPE_Q5_1:
        case GGML_TYPE_Q4_K:
        case GGML_TYPE_Q5_K:
        case GGML_TYPE_Q6_K:
            return true;
        default:
            return false;
    }
}

// Whether our kernel, which reads W as it is stored, is worthwhile: narrow results (LoRA's rank) leave most of its tile
// empty, and with many rows a copy of W pays for itself in the device's own products (on an H100 they are six times as
// fast).
bool has_kernel(const Graph & g, const ggml_tensor * w, const ggml_tensor * dy) {
    constexpr int64_t kManyRows = 256;
    return g.kernels() && is_kernel_type(w->type) && dy->ne[1] < kManyRows && w->ne[0] % 8 == 0 && w->ne[0] >= 32 &&
           dy->nb[0] == sizeof(float) && dy->ne[2] == 1 && dy->ne[3] == 1;
}

// Cuts the sum over a long axis into parts until every multiprocessor has two blocks to work on.
int choose_splits(const ggml_tensor * w, const ggml_tensor * dy, int multiprocessors) {
    const int64_t blocks = (w->ne[0] + 127) / 128 * ((dy->ne[1] + 127) / 128);
    return int(std::max<int64_t>(1, std::min(2 * multiprocessors / blocks, w->ne[1] / 512)));
}

ggml_tensor * multiply_transposed_by_kernel(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    const int splits = choose_splits(w, dy, g.kernels()->multiprocessors());
    ggml_tensor * parts =
        g.kernel({w->ne[0], dy->ne[1], splits}, {w, dy}, [splits](ggml_tensor * node, const DeviceKernels & kernels) {
        const ggml_tensor *w = node->src[0], *dy = node->src[1];
        kernels.run_transposed_product({int32_t(w->type), int32_t(w->ne[0]), int32_t(w->ne[1]), int32_t(dy->ne[1]),
            w->data, int64_t(w->nb[1]), static_cast<const float *>(dy->data), int64_t(dy->nb[1] / sizeof(float)),
            static_cast<float *>(node->data), splits});
    });
    return splits == 1 ? parts : ggml_view_2d(g.ctx(), parts, parts->ne[0], parts->ne[1], parts->nb[1], 0);
}

}  // namespace

ggml_tensor * add_rounding_to_f16(Graph & g, ggml_tensor * x) {
    return g.once(x, Derived::f16, [&] {
        return g.custom({x->ne[0], x->ne[1]}, {x}, [](ggml_tensor * node, int thread, int threads, Compute &) {
            const ggml_tensor * in = node->src[0];
            for (int64_t i = thread; i < in->ne[1]; i += threads) {
                const auto row = [i](const ggml_tensor * t) {
                    return reinterpret_cast<float *>(static_cast<char *>(t->data) + i * int64_t(t->nb[1]));
                };
                gemm_kernel().round_to_f16(row(in), row(node), in->ne[0]);
            }
        });
    });
}

ggml_tensor * multiply_weight(Graph & g, ggml_tensor * w, ggml_tensor * x) {
    if (!g.on_cpu()) return w->type == GGML_TYPE_F32 ? multiply(g, w, x) : ggml_mul_mat(g.ctx(), w, contiguous(g, x));
    if (w->type == GGML_TYPE_F32 || w->type == GGML_TYPE_BF16) return multiply_in_floats(g, w, false, x, nullptr);
    if (w->type == GGML_TYPE_F16) return multiply_in_floats(g, w, false, add_rounding_to_f16(g, x), nullptr);
    if (fits_integers(w->type, false, w->ne[0])) return multiply_in_integers(g, w, false, x, nullptr);
    return ggml_mul_mat(g.ctx(), w, x);
}

ggml_tensor * multiply_transposed(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    return add_transposed(g, nullptr, w, dy);
}

ggml_tensor * add_transposed(Graph & g, ggml_tensor * sum, ggml_tensor * w, ggml_tensor * dy) {
    if (!g.on_cpu()) {
        ggml_tensor * dx =
            has_kernel(g, w, dy) ? multiply_transposed_by_kernel(g, w, dy) : multiply_transposed_in_blocks(g, w, dy);
        return sum ? ggml_add(g.ctx(), sum, dx) : dx;
    }
    const bool in_integers = dy->nb[0] == sizeof(float) && fits_integers(w->type, true, w->ne[1]);
    return (in_integers ? multiply_in_integers : multiply_in_floats)(g, w, true, dy, sum);
}

}  // namespace cria
