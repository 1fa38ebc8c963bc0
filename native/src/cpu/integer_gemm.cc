#include "cpu/integer_gemm.h"

#include <algorithm>

namespace cria {

#ifdef __x86_64__

bool has_integer_gemm() {
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    return has;
}

bool fits_integers(ggml_type w_type, bool transposed, int64_t k) {
    return has_integer_gemm() && k % 32 == 0 && (transposed ? w_type != GGML_TYPE_F32 : w_type == GGML_TYPE_Q8_0);
}

void run_integer_gemm(const IntegerGemm & g, int part, int parts, IntegerWorkspace & w) {
    // Columns of a transposed W are cut where its blocks end.
    const int64_t row_unit = 4, column_unit = g.transposed ? std::max<int64_t>(16, ggml_blck_size(g.w_type)) : 16;
    // Threads that share rows each pack all of W, which costs more than rounding as many values of X.
    const bool by_rows = 2 * g.m >= g.n || g.n < 2 * parts * column_unit;
    const auto share = [&](int64_t total, int64_t unit, int64_t at) { return std::min(total, (total + unit - 1) / unit * at / parts * unit); };
    const int64_t i_begin = by_rows ? share(g.m, row_unit, part) : 0, i_end = by_rows ? share(g.m, row_unit, part + 1) : g.m;
    const int64_t j_begin = by_rows ? 0 : share(g.n, column_unit, part), j_end = by_rows ? g.n : share(g.n, column_unit, part + 1);
    if (i_begin < i_end && j_begin < j_end) run_integer_gemm_avx2(g, i_begin, i_end, j_begin, j_end, w);
}

#else

bool has_integer_gemm() { return false; }
bool fits_integers(ggml_type, bool, int64_t) { return false; }
void run_integer_gemm(const IntegerGemm &, int, int, IntegerWorkspace &) {}

#endif

}  // namespace cria
