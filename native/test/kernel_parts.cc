#include "kernel_parts.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "cpu/attention.h"
#include "cpu/gemm.h"
#include "cpu/integer_gemm.h"
#include "cpu/shared_range.h"
#include "cpu/streamed_head.h"

namespace cria {

namespace {

constexpr int kParts = 3;

std::vector<float> draw(int64_t count) {
    static std::mt19937 random(1);
    std::vector<float> values(static_cast<size_t>(count));
    for (float & value : values) value = std::uniform_real_distribution<float>(-1.0f, 1.0f)(random);
    return values;
}

// The threads are ordered only by start and end, as ggml's are by a node's start and end.
template <typename Part>
void run_at_once(int parts, Part part) {
    std::vector<std::thread> threads;
    threads.reserve(size_t(parts));
    for (int i = 0; i < parts; i++) threads.emplace_back([&, i] { part(i, parts); });
    for (auto & thread : threads) thread.join();
}

// Checks that the result of `compute(parts)` does not depend on the number of parts.
template <typename Compute>
bool is_same_in_parts(const char * name, Compute compute) {
    if (compute(kParts) == compute(1)) return true;
    std::fprintf(stderr, "%s: %d parts compute something else than one\n", name, kParts);
    return false;
}

// Adds sum_p A[i, p] W[p, j] to C: all threads round rows, then take columns piece by piece. Checks that the result is
// close to the F32 product of the same values.
bool check_integers(int64_t m, int64_t n, int64_t k, const std::vector<float> & a, const std::vector<float> & initial) {
    const auto w = draw(n * k);
    const size_t row = ggml_row_size(GGML_TYPE_F16, n);
    std::vector<uint8_t> halves(row * size_t(k));
    ggml_quantize_chunk(GGML_TYPE_F16, w.data(), halves.data(), 0, k, n, nullptr);
    const auto multiply = [&](int parts) {
        auto c = initial;
        const IntegerGemm gemm{
            m, n, k, a.data(), k, halves.data(), GGML_TYPE_F16, int64_t(row), true, c.data(), n, true};
        const int64_t panels = (m + kRoundedRows - 1) / kRoundedRows;
        std::vector<float> rounded(size_t(panels * kRoundedRows * rounded_size(k)));
        run_at_once(parts, [&](int part, int) {
            IntegerWorkspace workspace;
            round_rows(gemm, panels * part / parts * kRoundedRows, panels * (part + 1) / parts * kRoundedRows,
                rounded.data(), workspace);
        });
        SharedRange columns(n, integer_column_unit(gemm));
        run_at_once(parts, [&](int, int) {
            IntegerWorkspace workspace;
            for (int64_t begin, end; columns.take(parts, begin, end);)
                run_integer_columns(gemm, rounded.data(), begin, end, workspace);
        });
        return c;
    };
    auto exact = initial;
    GemmWorkspace workspace;
    run_gemm({m, n, k, a.data(), k, 1, halves.data(), GGML_TYPE_F16, int64_t(row), 1, exact.data(), n, true}, 0, 1,
        workspace);
    const auto c = multiply(1);
    double wrong = 0.0, whole = 0.0;
    for (size_t i = 0; i < c.size(); i++) {
        wrong += double(c[i] - exact[i]) * double(c[i] - exact[i]);
        whole += double(exact[i]) * double(exact[i]);
    }
    const bool near = wrong < 1e-7 * whole;
    if (!near) std::fprintf(stderr, "product in integers: relative error %g\n", std::sqrt(wrong / whole));
    return is_same_in_parts("product in integers", multiply) && near;
}

bool check_products() {
    bool ok = true;
    for (const int64_t m : {3, 130}) {
        const int64_t n = 200, k = 96;
        const auto a = draw(m * k), b = draw(n * k), initial = draw(m * n);
        ok &= is_same_in_parts("product", [&](int parts) {
            auto c = initial;
            run_at_once(parts, [&](int part, int) {
                GemmWorkspace workspace;
                run_gemm({m, n, k, a.data(), k, 1, b.data(), GGML_TYPE_F32, 1, k, c.data(), n, true}, part, parts,
                    workspace);
            });
            return c;
        });
        std::vector<uint8_t> halves(ggml_row_size(GGML_TYPE_F16, n * k)), eighths(ggml_row_size(GGML_TYPE_Q8_0, n * k));
        ggml_quantize_chunk(GGML_TYPE_F16, b.data(), halves.data(), 0, n, k, nullptr);
        ggml_quantize_chunk(GGML_TYPE_Q8_0, b.data(), eighths.data(), 0, n, k, nullptr);
        ok &= is_same_in_parts("product with F16", [&](int parts) {
            auto c = initial;
            run_at_once(parts, [&](int part, int) {
                GemmWorkspace workspace;
                const int64_t column = int64_t(ggml_row_size(GGML_TYPE_F16, k));
                run_gemm({m, n, k, a.data(), k, 1, halves.data(), GGML_TYPE_F16, 1, column, c.data(), n, false}, part,
                    parts, workspace);
            });
            return c;
        });
        if (!has_integer_gemm()) continue;
        ok &= is_same_in_parts("product with Q8_0", [&](int parts) {
            auto c = initial;
            run_at_once(parts, [&](int part, int) {
                IntegerWorkspace workspace;
                run_integer_gemm({m, n, k, a.data(), k, eighths.data(), GGML_TYPE_Q8_0,
                                     int64_t(ggml_row_size(GGML_TYPE_Q8_0, k)), false, c.data(), n, false},
                    part, parts, workspace);
            });
            return c;
        });
        ok &= check_integers(m, n, k, a, initial);
    }
    return ok;
}

// Two rows, one of them with nested branches, and padding; two query heads for each of two KV heads. `sinks` may be
// null.
bool check_attention(const float * sinks) {
    const int64_t rows = 2, length = 24, size = 16, heads = 4, kv_heads = 2, tokens = rows * length;
    std::vector<int32_t> ends(static_cast<size_t>(tokens), int32_t(length));
    for (int64_t i = 0; i < length; i++)
        ends[size_t(i)] = i < 5 ? 21 : i < 8 ? 14 : i < 11 ? 11 : i < 14 ? 14 : i < 21 ? 21 : 0;
    const AttentionPlan plan = plan_attention(ends, rows, length, 0);
    auto q = draw(tokens * heads * size), k = draw(tokens * kv_heads * size), v = draw(tokens * kv_heads * size),
         d_out = draw(tokens * heads * size);
    return is_same_in_parts(sinks ? "attention with sinks" : "attention", [&](int parts) {
        const auto filled = [&](int64_t n) { return std::vector<float>(size_t(tokens * n), 9.0f); };
        std::vector<std::vector<float>> out = {filled(heads * size), filled(heads), filled(heads * size),
            filled(kv_heads * size), filled(kv_heads * size), filled(heads)};
        const auto many = [&](std::vector<float> & x) { return HeadVectors{x.data(), heads, heads * size}; };
        const auto few = [&](std::vector<float> & x) { return HeadVectors{x.data(), kv_heads, kv_heads * size}; };
        const AttentionTensors tensors{
            size, 0.25f, many(q), few(k), few(v), many(out[0]), {out[1].data(), heads, heads}, sinks};
        const AttentionGradients gradients{many(d_out), many(out[2]), few(out[3]), few(out[4]),
            sinks ? HeadVectors{out[5].data(), heads, heads} : HeadVectors{}};
        run_at_once(parts, [&](int part, int) {
            AttentionWorkspace workspace;
            run_attention(plan, tensors, part, parts, workspace);
        });
        run_at_once(parts, [&](int part, int) {
            AttentionWorkspace workspace;
            run_attention_backward(plan, tensors, gradients, part, parts, workspace);
        });
        return out;
    });
}

// This only checks for races.
void race_head() {
    const int64_t rows = 5, width = 64, vocab = 2000;
    const auto x = draw(rows * width), w = draw(vocab * width);
    const std::vector<int32_t> targets = {0, 700, 1999, 3, 1400};
    const StreamedHead head{rows, width, vocab, x.data(), w.data(), GGML_TYPE_F32, int64_t(width * sizeof(float)), 1.0f,
        1.0f, targets.data(), true, true};
    std::vector<HeadShare> shares(kShares);
    run_at_once(kParts, [&](int part, int parts) {
        HeadWorkspace workspace;
        for (int share = part; share < kShares; share += parts)
            run_head_share(head, share, shares[size_t(share)], workspace);
    });
    std::vector<HeadRow> merged(static_cast<size_t>(rows));
    std::vector<float> slopes(size_t(rows * width), 0.0f);
    run_at_once(kParts, [&](int part, int parts) {
        for (int64_t i = part; i < rows; i += parts)
            merged[size_t(i)] = merge_head_row(head, shares, i, slopes.data() + i * width);
    });
}

}  // namespace

bool check_kernel_parts() {
    const std::vector<float> sinks = draw(4);
    const bool products = check_products(), attention = check_attention(nullptr),
               with_sinks = check_attention(sinks.data());
    race_head();
    return products && attention && with_sinks;
}

}  // namespace cria
