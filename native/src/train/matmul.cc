#include "train/matmul.h"

#include <algorithm>

namespace cria {

namespace {

const char * matrix_at(const ggml_tensor * t, int64_t i2, int64_t i3) { return static_cast<const char *>(t->data) + i2 * t->nb[2] + i3 * t->nb[3]; }

// C = B A in row-major terms: rows of C are the columns of `b`, as ggml_mul_mat has it.
void run_product(const ggml_tensor * a, const ggml_tensor * b, ggml_tensor * c, bool accumulate, int thread, int threads, Compute & compute) {
    const auto floats = [](size_t bytes) { return int64_t(bytes / sizeof(float)); };
    const int64_t batches = c->ne[2] * c->ne[3];
    // Many small products go one to a thread, few large ones are shared.
    const bool whole = batches >= threads;
    for (int64_t i = whole ? thread : 0; i < batches; i += whole ? threads : 1) {
        const int64_t i2 = i % c->ne[2], i3 = i / c->ne[2];
        Gemm gemm{};
        gemm.m = b->ne[1];
        gemm.n = a->ne[1];
        gemm.k = a->ne[0];
        gemm.a = reinterpret_cast<const float *>(matrix_at(b, i2, i3));
        gemm.a_row = floats(b->nb[1]);
        gemm.a_step = floats(b->nb[0]);
        gemm.b = matrix_at(a, i2, i3);
        gemm.b_type = GGML_TYPE_F32;
        gemm.b_step = floats(a->nb[0]);
        gemm.b_column = floats(a->nb[1]);
        gemm.c = reinterpret_cast<float *>(static_cast<char *>(c->data) + i2 * c->nb[2] + i3 * c->nb[3]);
        gemm.c_row = floats(c->nb[1]);
        gemm.accumulate = accumulate;
        run_gemm(gemm, whole ? 0 : thread, whole ? 1 : threads, compute.workspace(thread).gemm);
    }
}

// y = W x, or transposed W^T x, with W's rows as they are stored.
void run_in_integers(const ggml_tensor * w, bool transposed, const ggml_tensor * x, ggml_tensor * y, bool accumulate, int thread, int threads, Compute & compute) {
    IntegerGemm gemm{};
    gemm.m = x->ne[1];
    gemm.n = y->ne[0];
    gemm.k = x->ne[0];
    gemm.x = static_cast<const float *>(x->data);
    gemm.x_row = int64_t(x->nb[1] / sizeof(float));
    gemm.w = w->data;
    gemm.w_type = w->type;
    gemm.w_row = int64_t(w->nb[1]);
    gemm.transposed = transposed;
    gemm.c = static_cast<float *>(y->data);
    gemm.c_row = int64_t(y->nb[1] / sizeof(float));
    gemm.accumulate = accumulate;
    run_integer_gemm(gemm, thread, threads, compute.workspace(thread).gemm.integers);
}

// dx = W^T dy.
void run_transposed(const ggml_tensor * w, const ggml_tensor * dy, ggml_tensor * dx, bool accumulate, int thread, int threads, Compute & compute) {
    if (dy->nb[0] == sizeof(float) && fits_integers(w->type, true, w->ne[1])) {
        return run_in_integers(w, true, dy, dx, accumulate, thread, threads, compute);
    }
    Gemm gemm{};
    gemm.m = dy->ne[1];
    gemm.n = w->ne[0];
    gemm.k = w->ne[1];
    gemm.a = static_cast<const float *>(dy->data);
    gemm.a_row = int64_t(dy->nb[1] / sizeof(float));
    gemm.a_step = int64_t(dy->nb[0] / sizeof(float));
    gemm.b = w->data;
    gemm.b_type = w->type;
    gemm.b_step = int64_t(w->type == GGML_TYPE_F32 ? w->nb[1] / sizeof(float) : w->nb[1]);
    gemm.b_column = 1;
    gemm.c = static_cast<float *>(dx->data);
    gemm.c_row = int64_t(dx->nb[1] / sizeof(float));
    gemm.accumulate = accumulate;
    run_gemm(gemm, thread, threads, compute.workspace(thread).gemm);
}

// y = W x in F32, with W's rows as they are stored.
void run_weight(const ggml_tensor * w, const ggml_tensor * x, ggml_tensor * y, int thread, int threads, Compute & compute) {
    Gemm gemm{};
    gemm.m = x->ne[1];
    gemm.n = w->ne[1];
    gemm.k = w->ne[0];
    gemm.a = static_cast<const float *>(x->data);
    gemm.a_row = int64_t(x->nb[1] / sizeof(float));
    gemm.a_step = 1;
    gemm.b = w->data;
    gemm.b_type = w->type;
    gemm.b_step = 1;
    gemm.b_column = int64_t(w->nb[1]);
    gemm.c = static_cast<float *>(y->data);
    gemm.c_row = int64_t(y->nb[1] / sizeof(float));
    run_gemm(gemm, thread, threads, compute.workspace(thread).gemm);
}

ggml_tensor * contiguous(Graph & g, ggml_tensor * t) { return ggml_is_contiguous(t) ? t : ggml_cont(g.ctx(), t); }

ggml_tensor * transpose(Graph & g, ggml_tensor * t) { return ggml_transpose(g.ctx(), t); }

// As F32. Rows are picked, all of them: CUDA copies few types into another, but picks rows of any.
ggml_tensor * dequantize(Graph & g, ggml_tensor * w) {
    ggml_context * c = g.ctx();
    return ggml_get_rows(c, w, ggml_cast(c, ggml_arange(c, 0.0f, float(w->ne[1]), 1.0f), GGML_TYPE_I32));
}

// For devices whose products want W^T as a plain F32 matrix. An LM head of 150,000 rows would be half a gigabyte: it goes
// through in blocks of rows.
ggml_tensor * multiply_transposed_in_blocks(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    constexpr int64_t kBlock = 16384;
    ggml_tensor * dx = nullptr;
    for (int64_t begin = 0; begin < w->ne[1]; begin += kBlock) {
        const int64_t count = std::min(kBlock, w->ne[1] - begin);
        const bool whole = count == w->ne[1];
        ggml_tensor * rows = whole ? w : ggml_view_2d(c, w, w->ne[0], count, w->nb[1], size_t(begin) * w->nb[1]);
        ggml_tensor * part = whole ? dy : ggml_cont(c, ggml_view_2d(c, dy, count, dy->ne[1], dy->nb[1], size_t(begin) * dy->nb[0]));
        if (rows->type != GGML_TYPE_F32) rows = dequantize(g, rows);
        ggml_tensor * product = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, rows)), part);
        dx = dx ? ggml_add(c, dx, product) : product;
    }
    return dx;
}

// Our kernel reads W as it is stored. Narrow results (LoRA's rank) would leave most of its tile empty.
bool has_kernel(const Graph & g, const ggml_tensor * w, const ggml_tensor * dy) {
    return g.kernels() && w->ne[0] % 8 == 0 && w->ne[0] >= 32 && dy->nb[0] == sizeof(float) && dy->ne[2] == 1 && dy->ne[3] == 1;
}

// The sum over a long axis is cut in parts until every multiprocessor has two blocks to work on.
int choose_splits(const ggml_tensor * w, const ggml_tensor * dy, int multiprocessors) {
    const int64_t blocks = (w->ne[0] + 127) / 128 * ((dy->ne[1] + 127) / 128);
    return int(std::max<int64_t>(1, std::min(2 * multiprocessors / blocks, w->ne[1] / 512)));
}

ggml_tensor * multiply_transposed_by_kernel(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    const int splits = choose_splits(w, dy, g.kernels()->multiprocessors());
    ggml_tensor * parts = g.kernel({w->ne[0], dy->ne[1], splits}, {w, dy}, [splits](ggml_tensor * node, const DeviceKernels & kernels) {
        const ggml_tensor *w = node->src[0], *dy = node->src[1];
        kernels.multiply_transposed({int32_t(w->type), int32_t(w->ne[0]), int32_t(w->ne[1]), int32_t(dy->ne[1]), w->data, int64_t(w->nb[1]),
                                     static_cast<const float *>(dy->data), int64_t(dy->nb[1] / sizeof(float)), static_cast<float *>(node->data), splits});
    });
    return splits == 1 ? parts : ggml_view_2d(g.ctx(), parts, parts->ne[0], parts->ne[1], parts->nb[1], 0);
}

}  // namespace

ggml_tensor * multiply(Graph & g, ggml_tensor * a, ggml_tensor * b) {
    if (!g.on_cpu()) return ggml_mul_mat(g.ctx(), contiguous(g, a), contiguous(g, b));
    return g.custom({a->ne[1], b->ne[1], b->ne[2], b->ne[3]}, {a, b}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[0], node->src[1], node, false, thread, threads, compute);
    });
}

void accumulate_product(Graph & g, ggml_tensor * a, ggml_tensor * b, ggml_tensor * target) {
    if (!g.on_cpu()) return g.accumulate(multiply(g, a, b), target);
    g.expand(g.custom_inplace(g.ref(target), {a, b}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[1], node->src[2], node, true, thread, threads, compute);
    }));
}

ggml_tensor * add_product(Graph & g, ggml_tensor * sum, ggml_tensor * a, ggml_tensor * b) {
    if (!g.on_cpu()) return ggml_add(g.ctx(), sum, multiply(g, a, b));
    return g.custom_inplace(sum, {a, b}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[1], node->src[2], node, true, thread, threads, compute);
    });
}

ggml_tensor * round_to_f16(Graph & g, ggml_tensor * x) {
    return g.custom({x->ne[0], x->ne[1]}, {x}, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const ggml_tensor * in = node->src[0];
        for (int64_t i = thread; i < in->ne[1]; i += threads) {
            const auto row = [i](const ggml_tensor * t) { return reinterpret_cast<float *>(static_cast<char *>(t->data) + i * int64_t(t->nb[1])); };
            gemm_kernel().round_to_f16(row(in), row(node), in->ne[0]);
        }
    });
}

ggml_tensor * multiply_weight(Graph & g, ggml_tensor * w, ggml_tensor * x) {
    if (w->type == GGML_TYPE_F32) return multiply(g, w, x);
    if (g.on_cpu() && w->type == GGML_TYPE_F16) {
        return g.custom({w->ne[1], x->ne[1]}, {w, round_to_f16(g, x)}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
            run_weight(node->src[0], node->src[1], node, thread, threads, compute);
        });
    }
    if (g.on_cpu() && fits_integers(w->type, false, w->ne[0])) {
        return g.custom({w->ne[1], x->ne[1]}, {w, x}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
            run_in_integers(node->src[0], false, node->src[1], node, false, thread, threads, compute);
        });
    }
    return ggml_mul_mat(g.ctx(), w, g.on_cpu() ? x : contiguous(g, x));
}

ggml_tensor * multiply_transposed(Graph & g, ggml_tensor * w, ggml_tensor * dy) {
    if (!g.on_cpu()) return has_kernel(g, w, dy) ? multiply_transposed_by_kernel(g, w, dy) : multiply_transposed_in_blocks(g, w, dy);
    return g.custom({w->ne[0], dy->ne[1]}, {w, dy}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_transposed(node->src[0], node->src[1], node, false, thread, threads, compute);
    });
}

ggml_tensor * add_transposed(Graph & g, ggml_tensor * sum, ggml_tensor * w, ggml_tensor * dy) {
    if (!sum) return multiply_transposed(g, w, dy);
    if (!g.on_cpu()) return ggml_add(g.ctx(), sum, multiply_transposed(g, w, dy));
    return g.custom_inplace(sum, {w, dy}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_transposed(node->src[1], node->src[2], node, true, thread, threads, compute);
    });
}

ggml_tensor * outer_sum(Graph & g, ggml_tensor * a, ggml_tensor * b) { return multiply(g, transpose(g, a), transpose(g, b)); }

void accumulate_outer(Graph & g, ggml_tensor * x, ggml_tensor * dy, ggml_tensor * target) {
    accumulate_product(g, transpose(g, x), transpose(g, dy), target);
}

}  // namespace cria
