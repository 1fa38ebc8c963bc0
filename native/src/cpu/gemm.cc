#include "cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "cpu/kernel_choice.h"
#include "cpu/shared_range.h"

namespace cria {

namespace {

// A panel of B (kSumDepth x kernel columns) stays in the first cache, a block of A (kBlockRows x kSumDepth) in the
// second. kBlockColumns is a multiple of every quantization block.
constexpr int64_t kBlockRows = 96, kBlockColumns = 512;
// Up to this many rows, packing B costs more than transposing it again for every kRowsAtOnce of them.
constexpr int64_t kFewRows = 24;

}  // namespace

const GemmKernel & gemm_kernel() {
#ifdef __x86_64__
    static const GemmKernel & kernel = pick_for_kernel(gemm_portable, gemm_avx2, gemm_avx512);
    return kernel;
#else
    return gemm_portable;
#endif
}

void dequantize_row(ggml_type type, const void * in, float * out, int64_t n) {
    if (type == GGML_TYPE_F16 || type == GGML_TYPE_Q8_0) gemm_kernel().to_float(type, in, out, n);
    else ggml_get_type_traits(type)->to_float(in, out, n);
}

namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Copies `count` floats, a multiple of 8 for every kernel's panel: a call of memcpy would cost more than the copy.
inline void copy_panel_row(const float * in, float * out, int64_t count) {
    for (int64_t i = 0; i < count; i += 8) std::memcpy(out + i, in + i, 8 * sizeof(float));
}

// out[p][columns] for p in [p0, p0 + depth): one panel of columns [j0, j0 + width), zeros behind.
void pack_panel(
    const float * b, int64_t step, int64_t column, int64_t depth, int64_t width, int64_t columns, float * out) {
    const GemmKernel & kernel = gemm_kernel();
    if (width == columns && column == 1 && columns % 8 == 0) {
        for (int64_t p = 0; p < depth; p++) copy_panel_row(b + p * step, out + p * columns, columns);
        return;
    }
    if (width == columns && column == 1 && columns < 8 && step >= 8) {
        // Copies eight floats at once: the next line overwrites the excess, and the last lines are exact.
        for (int64_t p = 0; p + 2 < depth; p++) std::memcpy(out + p * columns, b + p * step, 8 * sizeof(float));
        for (int64_t p = std::max<int64_t>(0, depth - 2); p < depth; p++)
            std::copy_n(b + p * step, columns, out + p * columns);
        return;
    }
    if (width == columns && step == 1 && columns == kernel.columns)
        return kernel.pack_transposed(b, column, depth, out);
    if (width < columns) std::memset(out, 0, size_t(depth * columns) * sizeof(float));
    for (int64_t p = 0; p < depth; p++) {
        for (int64_t j = 0; j < width; j++) out[p * columns + j] = b[p * step + j * column];
    }
}

// Rows of B stored whole: each becomes floats, then goes to its panels.
void pack_typed_rows(
    const Gemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, int64_t columns, GemmWorkspace & w) {
    const char * b = static_cast<const char *>(g.b) + ggml_row_size(g.b_type, j0);
    w.row.resize(size_t(width));
    for (int64_t p = 0; p < depth; p++) {
        dequantize_row(g.b_type, b + (p0 + p) * g.b_step, w.row.data(), width);
        const int64_t whole = width / columns * columns;
        for (int64_t j = 0; j < whole; j += columns)
            copy_panel_row(w.row.data() + j, w.b.data() + j * depth + p * columns, columns);
        if (whole < width)
            pack_panel(w.row.data() + whole, 0, 1, 1, width - whole, columns, w.b.data() + whole * depth + p * columns);
    }
}

// Columns of B stored whole: a panel of them becomes floats, then is transposed.
void pack_typed_columns(
    const Gemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, int64_t columns, GemmWorkspace & w) {
    const char * b = static_cast<const char *>(g.b) + ggml_row_size(g.b_type, p0);
    const int64_t bytes = int64_t(ggml_row_size(g.b_type, depth));
    w.row.resize(size_t(columns * depth));
    for (int64_t j = 0; j < width; j += columns) {
        const int64_t count = std::min(columns, width - j);
        for (int64_t i = 0; i < count; i++) {
            const char * const column = b + (j0 + j + i) * g.b_column;
            // Columns are far apart, so no hardware prefetcher predicts them.
            for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(column + columns * g.b_column + byte);
            dequantize_row(g.b_type, column, w.row.data() + i * depth, depth);
        }
        pack_panel(w.row.data(), 1, depth, depth, count, columns, w.b.data() + j * depth);
    }
}

void pack_b(const Gemm & g, int64_t p0, int64_t depth, int64_t j0, int64_t width, int64_t columns, GemmWorkspace & w) {
    w.b.resize(size_t(depth * round_up(width, columns)));
    if (g.b_type != GGML_TYPE_F32)
        return (g.b_step == 1 ? pack_typed_columns : pack_typed_rows)(g, p0, depth, j0, width, columns, w);
    const float * b = static_cast<const float *>(g.b) + p0 * g.b_step + j0 * g.b_column;
    for (int64_t j = 0; j < width; j += columns) {
        pack_panel(b + j * g.b_column, g.b_step, g.b_column, depth, std::min(columns, width - j), columns,
            w.b.data() + j * depth);
    }
}

// Rows of A in the form that the kernel reads: in place if p is contiguous, else packed (strided reads would waste
// cache lines).
struct RowBlock {
    const float * data;
    int64_t row, step;
};

RowBlock take_rows(
    const Gemm & g, int64_t i0, int64_t height, int64_t p0, int64_t depth, int64_t rows, GemmWorkspace & w) {
    const float * a = g.a + i0 * g.a_row + p0 * g.a_step;
    if (g.a_step == 1 && height % rows == 0) return {a, g.a_row, 1};
    // Panels of `rows` rows, each [depth][rows], zeros below the last row.
    w.a.resize(size_t(round_up(height, rows) * depth));
    for (int64_t i = 0; i < height; i += rows) {
        pack_panel(a + i * g.a_row, g.a_step, g.a_row, depth, std::min(rows, height - i), rows, w.a.data() + i * depth);
    }
    return {w.a.data(), 1, rows};
}

void multiply_block(const GemmKernel & kernel, const Gemm & g, const RowBlock & a, int64_t i0, int64_t height,
    int64_t j0, int64_t width, int64_t depth, bool accumulate, GemmWorkspace & w) {
    const bool packed = a.row == 1;
    for (int64_t j = 0; j < width; j += kernel.columns) {
        const float * b = w.b.data() + j * depth;
        for (int64_t i = 0; i < height; i += kernel.rows) {
            const float * rows = a.data + (packed ? i * depth : i * a.row);
            float * c = g.c + (i0 + i) * g.c_row + j0 + j;
            const int64_t full_rows = std::min<int64_t>(kernel.rows, height - i),
                          full_columns = std::min<int64_t>(kernel.columns, width - j);
            if (full_rows == kernel.rows && full_columns == kernel.columns) {
                kernel.run(depth, rows, a.row, a.step, b, c, g.c_row, accumulate);
                continue;
            }
            w.tile.resize(size_t(kernel.rows) * size_t(kernel.columns));
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

// Columns [j_begin, j_end), in eights, of a product of few rows with columns of B that are stored whole.
void multiply_few_rows(const Gemm & g, int64_t j_begin, int64_t j_end) {
    const int64_t size = int64_t(ggml_type_size(g.b_type)),
                  column = g.b_type == GGML_TYPE_F32 ? g.b_column : g.b_column / size;
    const char * const b = static_cast<const char *>(g.b);
    for (int64_t j = j_begin; j < j_end; j += kColumnsAtOnce) {
        const int64_t columns = std::min(kColumnsAtOnce, j_end - j);
        for (int64_t p = 0; p < g.k; p += kSumDepth) {
            const int64_t depth = std::min(kSumDepth, g.k - p);
            for (int64_t i = 0; i < g.m; i += kRowsAtOnce) {
                const auto run = gemm_kernel().few_rows[std::min<int64_t>(kRowsAtOnce, g.m - i) - 1];
                run(depth, columns, g.a + i * g.a_row + p, g.a_row, g.b_type, b + (j * column + p) * size, column,
                    g.c + i * g.c_row + j, g.c_row, g.accumulate || p > 0);
            }
        }
    }
}

// Rows [i_begin, i_end) of columns [j_begin, j_end), B packed for all of the rows.
void run_block(const Gemm & g, int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end, GemmWorkspace & w) {
    const GemmKernel & kernel = gemm_kernel();
    const int64_t block_rows = kBlockRows / kernel.rows * kernel.rows;
    for (int64_t j = j_begin; j < j_end; j += kBlockColumns) {
        const int64_t width = std::min(kBlockColumns, j_end - j);
        for (int64_t p = 0; p < g.k; p += kSumDepth) {
            const int64_t depth = std::min(kSumDepth, g.k - p);
            pack_b(g, p, depth, j, width, kernel.columns, w);
            for (int64_t i = i_begin, height; i < i_end; i += height) {
                height = std::min(block_rows, i_end - i);
                // Whole tiles are read in place; the remaining rows are packed separately.
                if (g.a_step == 1 && height > kernel.rows) height -= height % kernel.rows;
                const RowBlock rows = take_rows(g, i, height, p, depth, kernel.rows, w);
                multiply_block(kernel, g, rows, i, height, j, width, depth, g.accumulate || p > 0, w);
            }
        }
    }
}

// Whether the product has so few rows that B is read as it is stored.
bool has_few_rows(const Gemm & g) {
    return g.m <= kFewRows && g.n % 8 == 0 && g.a_step == 1 && g.b_step == 1 && is_float_type(g.b_type);
}

}  // namespace

int64_t gemm_column_unit(ggml_type b_type) { return std::max<int64_t>(gemm_kernel().columns, ggml_blck_size(b_type)); }

// Threads that share rows of C each pack all of B; those that share columns each read all of A, which costs more where
// A must be packed too.
bool has_shared_columns(const Gemm & g, int parts) {
    if (has_few_rows(g)) return true;
    const GemmKernel & kernel = gemm_kernel();
    const bool few_columns = g.n < 2 * parts * gemm_column_unit(g.b_type);
    return !few_columns && (g.a_step == 1 ? g.m < 4 * g.n : g.m * kernel.columns < g.n * kernel.rows);
}

void run_gemm_columns(const Gemm & g, int64_t j_begin, int64_t j_end, GemmWorkspace & w) {
    if (has_few_rows(g)) return multiply_few_rows(g, j_begin, j_end);
    run_block(g, 0, g.m, j_begin, j_end, w);
}

void run_gemm(const Gemm & g, int part, int parts, GemmWorkspace & w) {
    if (has_few_rows(g)) {
        const int64_t eights = g.n / 8;
        return multiply_few_rows(g, eights * part / parts * 8, eights * (part + 1) / parts * 8);
    }
    const int64_t row_unit = gemm_kernel().rows, column_unit = gemm_column_unit(g.b_type);
    if (has_shared_columns(g, parts))
        run_block(
            g, 0, g.m, part_begin(g.n, column_unit, part, parts), part_begin(g.n, column_unit, part + 1, parts), w);
    else run_block(g, part_begin(g.m, row_unit, part, parts), part_begin(g.m, row_unit, part + 1, parts), 0, g.n, w);
}

}  // namespace cria
