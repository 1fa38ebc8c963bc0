#include "cpu/gemm_q8.h"

#include <algorithm>

namespace cria {

#ifdef __x86_64__

bool has_q8_gemm() {
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
}

void run_q8_gemm(const Q8Gemm & g, int part, int parts, Q8Workspace & w) {
    constexpr int64_t kRows = 4, kColumns = 16;
    // Rounding a row of X costs about as much as packing two columns of W.
    const bool by_rows = 2 * g.m >= g.n || g.n < 2 * parts * kColumns;
    const auto share = [&](int64_t total, int64_t unit, int64_t at) { return std::min(total, (total + unit - 1) / unit * at / parts * unit); };
    const int64_t i_begin = by_rows ? share(g.m, kRows, part) : 0, i_end = by_rows ? share(g.m, kRows, part + 1) : g.m;
    const int64_t j_begin = by_rows ? 0 : share(g.n, kColumns, part), j_end = by_rows ? g.n : share(g.n, kColumns, part + 1);
    if (i_begin < i_end && j_begin < j_end) run_q8_gemm_avx2(g, i_begin, i_end, j_begin, j_end, w);
}

#else

bool has_q8_gemm() { return false; }
void run_q8_gemm(const Q8Gemm &, int, int, Q8Workspace &) {}

#endif

}  // namespace cria
