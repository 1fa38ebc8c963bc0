#include "train/matmul.h"

#include "cpu/tensor_products.h"

namespace cria {

namespace {

const char * matrix_at(const ggml_tensor * t, int64_t i2, int64_t i3) {
    return static_cast<const char *>(t->data) + i2 * t->nb[2] + i3 * t->nb[3];
}

// C = B A in row-major terms: rows of C are the columns of `b`, as in ggml_mul_mat.
void run_product(const ggml_tensor * a, const ggml_tensor * b, ggml_tensor * c, bool accumulate, int thread,
    int threads, Compute & compute) {
    const int64_t batches = c->ne[2] * c->ne[3];
    // Many small products are divided among the threads, few large ones are shared by all.
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

ggml_tensor * transpose(Graph & g, ggml_tensor * t) { return ggml_transpose(g.ctx(), t); }

}  // namespace

ggml_tensor * contiguous(Graph & g, ggml_tensor * t) { return ggml_is_contiguous(t) ? t : ggml_cont(g.ctx(), t); }

ggml_tensor * multiply(Graph & g, ggml_tensor * a, ggml_tensor * b) {
    if (!g.on_cpu()) return ggml_mul_mat(g.ctx(), contiguous(g, a), contiguous(g, b));
    return g.custom({a->ne[1], b->ne[1], b->ne[2], b->ne[3]}, {a, b},
        [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[0], node->src[1], node, false, thread, threads, compute);
    });
}

void accumulate_product(Graph & g, ggml_tensor * a, ggml_tensor * b, ggml_tensor * target) {
    if (!g.on_cpu()) return g.accumulate(multiply(g, a, b), target);
    g.expand(
        g.custom_inplace(g.ref(target), {a, b}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[1], node->src[2], node, true, thread, threads, compute);
    }));
}

ggml_tensor * add_product(Graph & g, ggml_tensor * sum, ggml_tensor * a, ggml_tensor * b) {
    if (!g.on_cpu()) return ggml_add(g.ctx(), sum, multiply(g, a, b));
    return g.custom_inplace(sum, {a, b}, [](ggml_tensor * node, int thread, int threads, Compute & compute) {
        run_product(node->src[1], node->src[2], node, true, thread, threads, compute);
    });
}

ggml_tensor * outer_sum(Graph & g, ggml_tensor * a, ggml_tensor * b) {
    return multiply(g, transpose(g, a), transpose(g, b));
}

void accumulate_outer(Graph & g, ggml_tensor * x, ggml_tensor * dy, ggml_tensor * target) {
    accumulate_product(g, transpose(g, x), transpose(g, dy), target);
}

}  // namespace cria
