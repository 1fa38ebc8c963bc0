#include "cpu/gemm.h"

#include <algorithm>
#include <cstring>

namespace cria {

namespace {

// A panel of B (kDepth x kernel columns) stays in the first cache, a block of A (kBlockRows x kDepth) in the second.
// kBlockColumns is a multiple of every quantization block.
constexpr int64_t kDepth = 256, kBlockRows = 96, kBlockColumns = 512;

const GemmKernel & pick_kernel() {
#ifdef __x86_64__
    static const GemmKernel & best = __builtin_cpu_supports("avx512f")                                   ? gemm_avx512
                                     : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? gemm_avx2
                                                                                                       : gemm_portable;
    return best;
#else
    return gemm_portable;
#endif
}

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// out[p][columns] for p in [p0, p0 + depth): one panel of columns [j0, j0 + width), zeros behind.
void pack_panel(const float * b, int64_t step, int64_t column, int64_t depth, int64_t width, int64_t columns, float * out) {
    if (width < columns) std::memset(out, 0, size_t(depth * columns) * sizeof(float));
    if (column == 1) {
        for (int64_t p = 0; p < depth; p++) std::memcpy(out + p * columns, b + p * step, size_t(width) * sizeof(float));
        return;
    }
    for (int64_t j = 0; j < width; j++) {
        const float * in = b + j * column;
        for (int64_t p = 0; p < depth; p++) out[p * columns + j] = in[p * step];
    }
}

void pack_b(const Gemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, int64_t columns, GemmWorkspace & w) {
    w.b.resize(size_t(depth * round_up(width, columns)));
    if (g.b_type == GGML_TYPE_F32) {
        const float * b = static_cast<const float *>(g.b) + p0 * g.b_step + j0 * g.b_column;
        for (int64_t j = 0; j < width; j += columns) {
            pack_panel(b + j * g.b_column, g.b_step, g.b_column, depth, std::min(columns, width - j), columns, w.b.data() + j * depth);
        }
        return;
    }
    const size_t offset = ggml_row_size(g.b_type, j0);
    const auto to_float = ggml_get_type_traits(g.b_type)->to_float;
    w.row.resize(size_t(width));
    for (int64_t p = 0; p < depth; p++) {
        to_float(static_cast<const char *>(g.b) + (p0 + p) * g.b_step + offset, w.row.data(), width);
        for (int64_t j = 0; j < width; j += columns) pack_panel(w.row.data() + j, 0, 1, 1, std::min(columns, width - j), columns, w.b.data() + j * depth + p * columns);
    }
}

// Rows of A as the kernel reads them: where they lie if p is contiguous, else packed (strided reads would waste cache lines).
struct RowBlock {
    const float * data;
    int64_t row, step;
};

RowBlock take_rows(const Gemm & g, int64_t i0, int64_t height, int64_t p0, int64_t depth, int64_t rows, GemmWorkspace & w) {
    const float * a = g.a + i0 * g.a_row + p0 * g.a_step;
    if (g.a_step == 1 && height % rows == 0) return {a, g.a_row, 1};
    // Panels of `rows` rows, each [depth][rows], zeros below the last row.
    w.a.resize(size_t(round_up(height, rows) * depth));
    for (int64_t i = 0; i < height; i += rows) {
        pack_panel(a + i * g.a_row, g.a_step, g.a_row, depth, std::min(rows, height - i), rows, w.a.data() + i * depth);
    }
    return {w.a.data(), 1, rows};
}

void multiply_block(const GemmKernel & kernel, const Gemm & g, const RowBlock & a, int64_t i0, int64_t height, int64_t j0, int64_t width,
                    int64_t depth, bool accumulate, GemmWorkspace & w) {
    const bool packed = a.row == 1;
    for (int64_t j = 0; j < width; j += kernel.columns) {
        const float * b = w.b.data() + j * depth;
        for (int64_t i = 0; i < height; i += kernel.rows) {
            const float * rows = a.data + (packed ? i * depth : i * a.row);
            float * c = g.c + (i0 + i) * g.c_row + j0 + j;
            const int64_t full_rows = std::min<int64_t>(kernel.rows, height - i), full_columns = std::min<int64_t>(kernel.columns, width - j);
            if (full_rows == kernel.rows && full_columns == kernel.columns) {
                kernel.run(depth, rows, a.row, a.step, b, c, g.c_row, accumulate);
                continue;
            }
            w.tile.resize(size_t(kernel.rows * kernel.columns));
            kernel.run(depth, rows, a.row, a.step, b, w.tile.data(), kernel.columns, false);
            for (int64_t r = 0; r < full_rows; r++) {
                for (int64_t s = 0; s < full_columns; s++) {
                    float & out = c[r * g.c_row + s];
                    out = (accumulate ? out : 0.0f) + w.tile[size_t(r * kernel.columns + s)];
                }
            }
        }
    }
}

}  // namespace

void run_gemm(const Gemm & g, int part, int parts, GemmWorkspace & w) {
    const GemmKernel & kernel = pick_kernel();
    // Quantized rows cannot be cut anywhere, so their threads share rows of C.
    const bool by_rows = g.b_type != GGML_TYPE_F32 || g.m * kernel.columns >= g.n * kernel.rows;
    const auto share = [&](int64_t total, int64_t unit, int64_t at) { return std::min(total, (total + unit - 1) / unit * at / parts * unit); };
    const int64_t i_begin = by_rows ? share(g.m, kernel.rows, part) : 0, i_end = by_rows ? share(g.m, kernel.rows, part + 1) : g.m;
    const int64_t j_begin = by_rows ? 0 : share(g.n, kernel.columns, part), j_end = by_rows ? g.n : share(g.n, kernel.columns, part + 1);
    if (i_begin >= i_end || j_begin >= j_end) return;
    const int64_t block_rows = kBlockRows / kernel.rows * kernel.rows;
    for (int64_t j = j_begin; j < j_end; j += kBlockColumns) {
        const int64_t width = std::min(kBlockColumns, j_end - j);
        for (int64_t p = 0; p < g.k; p += kDepth) {
            const int64_t depth = std::min(kDepth, g.k - p);
            pack_b(g, p, depth, j, width, kernel.columns, w);
            for (int64_t i = i_begin; i < i_end; i += block_rows) {
                const int64_t height = std::min(block_rows, i_end - i);
                const RowBlock rows = take_rows(g, i, height, p, depth, kernel.rows, w);
                multiply_block(kernel, g, rows, i, height, j, width, depth, g.accumulate || p > 0, w);
            }
        }
    }
}

}  // namespace cria
