#include "cpu/integer_gemm.h"

#include <algorithm>

#include "cpu/integer_kernel.h"
#include "cpu/kernel_choice.h"
#include "cpu/shared_range.h"

namespace cria {

int64_t integer_column_unit(const IntegerGemm & g) {
    return g.transposed ? std::max<int64_t>(16, ggml_blck_size(g.w_type)) : 16;
}

#ifdef __x86_64__

namespace {

const IntegerKernel & kernel() {
    static const IntegerKernel & chosen = cpu_has_vnni() ? vnni::integer_kernel : avx2::integer_kernel;
    return chosen;
}

template <typename T>
void grow(std::vector<T> & values, size_t size) {
    if (values.size() < size) values.resize(size);
}

void prepare(const IntegerGemm & g, IntegerWorkspace & w) {
    const WorkspaceSizes sizes = kernel().workspace_sizes(g);
    grow(w.row, sizes.row);
    grow(w.row_bytes, sizes.row);
    grow(w.row_scales, sizes.row_scales);
    grow(w.row_sums, sizes.row_sums);
    grow(w.w, sizes.w);
    grow(w.w_scales, sizes.w_scales);
    grow(w.w_mins, sizes.w_mins);
    grow(w.min_scales, sizes.w_scales);
    grow(w.floats, sizes.floats);
}

}  // namespace

bool has_integer_gemm() { return cpu_kernel() != CpuKernel::portable; }
bool has_integer_weights(ggml_type type) { return has_integer_gemm() && kernel().has_blocks(type); }

void run_integer_gemm(const IntegerGemm & g, int part, int parts, IntegerWorkspace & w) {
    const int64_t column_unit = integer_column_unit(g);
    // Rounding a row of X costs about as much as packing two columns of W.
    const bool by_rows = 2 * g.m >= g.n || g.n < 2 * parts * column_unit;
    const int64_t i_begin = by_rows ? part_begin(g.m, kRoundedRows, part, parts) : 0,
                  i_end = by_rows ? part_begin(g.m, kRoundedRows, part + 1, parts) : g.m;
    const int64_t j_begin = by_rows ? 0 : part_begin(g.n, column_unit, part, parts),
                  j_end = by_rows ? g.n : part_begin(g.n, column_unit, part + 1, parts);
    if (i_begin >= i_end || j_begin >= j_end) return;
    IntegerGemm mine = g;
    mine.m = i_end - i_begin;
    mine.x += i_begin * g.x_row;
    mine.c += i_begin * g.c_row;
    prepare(mine, w);
    if (kernel().has_few_rows(mine, j_end - j_begin)) return kernel().multiply_few_rows(mine, j_begin, j_end, w);
    grow(w.x, size_t((mine.m + kRoundedRows - 1) / kRoundedRows * kRoundedRows * rounded_size(g.k)));
    kernel().round_rows(mine, 0, mine.m, w.x.data(), w);
    kernel().multiply_columns(mine, w.x.data(), j_begin, j_end, w);
}

void round_rows(const IntegerGemm & g, int64_t begin, int64_t end, float * out, IntegerWorkspace & w) {
    prepare(g, w);
    kernel().round_rows(g, begin, end, out, w);
}

void run_integer_columns(
    const IntegerGemm & g, const float * rounded, int64_t j_begin, int64_t j_end, IntegerWorkspace & w) {
    prepare(g, w);
    kernel().multiply_columns(g, rounded, j_begin, j_end, w);
}

#else

bool has_integer_gemm() { return false; }
bool has_integer_weights(ggml_type) { return false; }
void run_integer_gemm(const IntegerGemm &, int, int, IntegerWorkspace &) {}
void round_rows(const IntegerGemm &, int64_t, int64_t, float *, IntegerWorkspace &) {}
void run_integer_columns(const IntegerGemm &, const float *, int64_t, int64_t, IntegerWorkspace &) {}

#endif

bool fits_integers(ggml_type w_type, bool transposed, int64_t k) {
    if (transposed) return has_integer_gemm() && k % 32 == 0 && w_type != GGML_TYPE_F32;
    return has_integer_weights(w_type) && k % ggml_blck_size(w_type) == 0;
}

}  // namespace cria
