// Checks that a row's bits depend only on the row: not on the number of rows, which chooses between tiles and the code
// for few rows, nor on the number of threads. Prints one line of JSON for each product, with a digest of all its
// results: kernels with equal lines agree bit for bit. Uses the process's kernel (CRIA_CPU_KERNEL).
#include "kernel_bits.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/integer_gemm.h"
#include "cpu/kernel_choice.h"
#include "math/softmax.h"

using namespace cria;

namespace {

constexpr int64_t kMostRows = 64;
constexpr int kMostThreads = 4;

std::mt19937 random_bits(7);

std::vector<float> draw(int64_t count, float size = 1.0f) {
    std::vector<float> values(static_cast<size_t>(count));
    // Divides by a power of two, so that every standard library gives the same numbers.
    for (float & value : values) value = size * (float(random_bits() >> 8) / 8388608.0f - 1.0f);
    return values;
}

// FNV-1a over the bits.
class Digest {
   public:
    void add(const std::vector<float> & values) {
        const auto * bytes = reinterpret_cast<const unsigned char *>(values.data());
        for (size_t i = 0; i < values.size() * sizeof(float); i++) state_ = (state_ ^ bytes[i]) * 0x100000001b3ull;
    }
    unsigned long long value() const { return state_; }

   private:
    unsigned long long state_ = 0xcbf29ce484222325ull;
};

void report(const std::string & name, const Digest & digest, const std::string & problem) {
    std::printf("{\"name\": \"%s\", \"kernel\": \"%s\", \"digest\": \"%016llx\", \"problem\": \"%s\"}\n", name.c_str(),
        cpu_kernel_name(), digest.value(), problem.c_str());
}

// Compares multiply(m, first row of X, C [m, n], part, parts) for all numbers of rows and threads with each row by
// itself, whose results find_problem(C) judges first.
template <typename Multiply, typename FindProblem>
void check_product(const std::string & name, int64_t n, const Multiply & multiply, const FindProblem & find_problem) {
    std::vector<float> alone;
    for (int64_t i = 0; i < kMostRows; i++) {
        std::vector<float> row(size_t(n), 0.0f);
        multiply(int64_t(1), i, row.data(), 0, 1);
        alone.insert(alone.end(), row.begin(), row.end());
    }
    std::string problem = find_problem(alone);
    for (int64_t m = 1; m <= kMostRows && problem.empty(); m++) {
        for (int threads = 1; threads <= kMostThreads && problem.empty(); threads++) {
            std::vector<float> together(size_t(m * n), 0.0f);
            for (int part = 0; part < threads; part++) multiply(m, int64_t(0), together.data(), part, threads);
            if (!std::equal(together.begin(), together.end(), alone.begin()))
                problem =
                    std::to_string(m) + " rows with " + std::to_string(threads) + " threads differ from each alone";
        }
    }
    Digest digest;
    digest.add(alone);
    report(name, digest, problem);
}

template <typename Multiply>
void check_product(const std::string & name, int64_t n, const Multiply & multiply) {
    check_product(name, n, multiply, [](const std::vector<float> &) { return std::string(); });
}

std::vector<uint8_t> quantize(ggml_type type, const std::vector<float> & w, int64_t rows, int64_t columns) {
    std::vector<uint8_t> data(ggml_row_size(type, columns) * size_t(rows));
    if (type == GGML_TYPE_F32) std::copy_n(reinterpret_cast<const uint8_t *>(w.data()), data.size(), data.data());
    else ggml_quantize_chunk(type, w.data(), data.data(), 0, rows, columns, nullptr);
    return data;
}

// X W^T by columns of `k` values: two blocks of the sum and a remainder; columns in eights, and not.
void check_forward(ggml_type type, int64_t n, int64_t k) {
    const auto x = draw(kMostRows * k);
    const auto w = quantize(type, draw(n * k), n, k);
    const int64_t row = int64_t(ggml_row_size(type, k)), column = type == GGML_TYPE_F32 ? k : row;
    GemmWorkspace workspace;
    check_product("forward " + std::string(ggml_type_name(type)) + " " + std::to_string(n) + " x " + std::to_string(k),
        n, [&](int64_t m, int64_t first, float * c, int part, int parts) {
        const float * rows = x.data() + first * k;
        run_gemm({m, n, k, rows, k, 1, w.data(), type, 1, column, c, n, false}, part, parts, workspace);
    });
}

// Offsets of the F16 scales in a block of a type.
std::vector<size_t> list_scales(ggml_type type) {
    if (type == GGML_TYPE_MXFP4) return {};
    if (type == GGML_TYPE_Q6_K) return {208};
    if (type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1 || type == GGML_TYPE_Q4_K || type == GGML_TYPE_Q5_K)
        return {0, 2};
    return {0};
}

// Rows of any bytes, with scales of about a hundredth: no quantizer writes all scales and values.
std::vector<uint8_t> draw_blocks(ggml_type type, int64_t rows, int64_t columns) {
    std::vector<uint8_t> data(ggml_row_size(type, columns) * size_t(rows));
    for (uint8_t & byte : data) byte = uint8_t(random_bits() >> 24);
    for (size_t block = 0; block < data.size(); block += ggml_type_size(type)) {
        for (const size_t place : list_scales(type)) {
            const ggml_fp16_t scale = ggml_fp32_to_fp16(draw(1, 0.01f)[0]);
            std::memcpy(data.data() + block + place, &scale, sizeof scale);
        }
        if (type == GGML_TYPE_MXFP4) data[block] = uint8_t(119 + random_bits() % 4);  // 2^-9 to 2^-6
    }
    return data;
}

// X W^T in integers, for W as it is stored. Close to the product with the dequantized weights; rows of equal values are
// rounded to the largest integers.
void check_stored(ggml_type type, int64_t n, int64_t k) {
    auto x = draw(kMostRows * k);
    std::fill_n(x.data() + k, 2 * k, 1.0f);
    for (int64_t p = 0; p < k; p++) x[size_t(3 * k + p)] = p % 3 == 0 ? -1.0f : 1.0f;
    const auto w = draw_blocks(type, n, k);
    const int64_t row = int64_t(ggml_row_size(type, k));
    std::vector<float> floats(size_t(n * k));
    for (int64_t j = 0; j < n; j++) dequantize_row(type, w.data() + j * row, floats.data() + j * k, k);
    IntegerWorkspace workspace;
    check_product("stored " + std::string(ggml_type_name(type)) + " " + std::to_string(n) + " x " + std::to_string(k),
        n, [&](int64_t m, int64_t first, float * c, int part, int parts) {
        run_integer_gemm(
            {m, n, k, x.data() + first * k, k, w.data(), type, row, false, c, n, false}, part, parts, workspace);
    }, [&](const std::vector<float> & c) {
        for (int64_t i = 0; i < kMostRows; i++) {
            double wrong = 0.0, whole = 0.0;
            for (int64_t j = 0; j < n; j++) {
                double exact = 0.0, size = 0.0;
                for (int64_t p = 0; p < k; p++) {
                    const double product = double(x[size_t(i * k + p)]) * double(floats[size_t(j * k + p)]);
                    exact += product;
                    size += product * product;
                }
                wrong += (double(c[size_t(i * n + j)]) - exact) * (double(c[size_t(i * n + j)]) - exact);
                whole += size;
            }
            // Values of X are rounded to a 254th of the largest at most, those of rows 1 to 3 not at all.
            const double most = i >= 1 && i <= 3 ? 1e-3 : 2e-2;
            if (!(wrong < most * most * whole))
                return "row " + std::to_string(i) + " is wrong by " + std::to_string(std::sqrt(wrong / whole));
        }
        return std::string();
    });
}

// X W, as in gradients: W's rows are stored whole. In floats, and in integers if the kernel has them.
void check_backward(ggml_type type, bool in_integers) {
    const int64_t k = 96, n = 512;
    const auto x = draw(kMostRows * k);
    const auto w = quantize(type, draw(n * k), k, n);
    const int64_t row = int64_t(ggml_row_size(type, n)), step = type == GGML_TYPE_F32 ? n : row;
    GemmWorkspace workspace;
    check_product("backward " + std::string(ggml_type_name(type)) + (in_integers ? " in integers" : ""), n,
        [&](int64_t m, int64_t first, float * c, int part, int parts) {
        const float * rows = x.data() + first * k;
        if (in_integers)
            run_integer_gemm(
                {m, n, k, rows, k, w.data(), type, row, true, c, n, false}, part, parts, workspace.integers);
        else run_gemm({m, n, k, rows, k, 1, w.data(), type, step, 1, c, n, false}, part, parts, workspace);
    });
}

// All remainders of a row's length, through all functions of row_kernel().
Digest run_rows(const RowKernel & kernel) {
    random_bits.seed(11);
    Digest digest;
    for (int n = 1; n <= 600; n += n < 70 ? 1 : 53) {
        const auto x = draw(n, 20.0f), p = draw(n), up = draw(n);
        std::vector<float> results = {kernel.largest(x.data(), n, 0.7f)};
        const float max = results[0];
        double weighted = 0.0;
        results.push_back(float(kernel.sum_exp(x.data(), n, 0.7f, max)));
        std::vector<float> a = x, b = x, c = x, d = x, e = x, f(x.size()), g(x.size()), h(x.size()), i(x.size()),
                           j(x.size()), k(x.size()), l(x.size());
        results.push_back(kernel.replace_by_exp(a.data(), n, 0.7f, max));
        results.push_back(float(kernel.replace_by_exp_times(b.data(), n, 0.7f, max, weighted)));
        results.push_back(float(weighted));
        kernel.exp_of(c.data(), n, 0.7f, max + 1.0f, c.data());
        kernel.scale_row(c.data(), n, 0.3f);
        kernel.add_products(x.data(), up.data(), c.data(), n);
        kernel.backward(d.data(), p.data(), n, 0.7f, 0.1f);
        kernel.gradient(e.data(), n, 0.7f, max + 1.0f, 2.0f, 0.4f, -0.2f);
        kernel.swiglu_gradient(x.data(), up.data(), p.data(), f.data(), g.data(), n);
        kernel.geglu(x.data(), up.data(), h.data(), n);
        kernel.geglu_gradient(x.data(), up.data(), p.data(), i.data(), j.data(), n);
        kernel.clamped_gradient(x.data(), x.data(), p.data(), k.data(), l.data(), n);
        for (const auto & values : {results, a, b, c, d, e, f, g, h, i, j, k, l}) digest.add(values);
    }
    return digest;
}

// Tokens of the rule of states, and their gradients, one behind the other.
Digest run_state_rows(const RowKernel & kernel) {
    random_bits.seed(12);
    Digest digest;
    for (const int n : {4, 8, 12, 16, 20, 64, 100, 128, 256}) {
        for (const bool corrects : {false, true}) {
            const int m = corrects ? n : n / 2 + 1;
            std::vector<float> state(size_t(n * m), 0.0f), d_state = draw(n * m), out(size_t(m), 0.0f);
            for (int token = 0; token < 5; token++) {
                const auto q = draw(n), k = draw(n, 0.2f), v = draw(m), d_out = draw(m);
                const StateToken t{
                    q.data(), k.data(), v.data(), token == 2 ? 0.3f : -0.4f * float(token), 0.6f, n, m, corrects};
                std::vector<float> d_q(size_t(n), 0.0f), d_k = d_q, d_v(size_t(m), 0.0f);
                StateTokenGradient gradient{d_q.data(), d_k.data(), d_v.data(), 0.0f, 0.0f};
                kernel.state_gradient(state.data(), t, d_out.data(), d_state.data(), gradient);
                kernel.state_step(state.data(), t, out.data());
                for (const auto & values : {state, d_state, out, d_q, d_k, d_v}) digest.add(values);
                digest.add({gradient.log_decay, gradient.beta});
            }
        }
    }
    return digest;
}

void check_rows() {
    report("softmax and gates", run_rows(row_kernel()), "");
    report("rule of states", run_state_rows(row_kernel()), "");
}

#ifdef __x86_64__

// 12 x 32 results of a kernel's tile, or of its code for few rows, by groups of these sizes.
std::vector<float> run_by_kernel(const GemmKernel & kernel, const std::vector<int> & few, const std::vector<float> & a,
    const std::vector<float> & b, int64_t k) {
    constexpr int kRows = 12, kColumns = 32;
    std::vector<float> c(kRows * kColumns, 1.5f), panel(size_t(k * kernel.columns));
    int i = 0;
    for (const int rows : few) {
        for (int j = 0, columns = 8; j < kColumns; j += columns, columns = j == 8 ? 16 : 8)
            kernel.few_rows[rows - 1](k, columns, a.data() + i * k, k, GGML_TYPE_F32, b.data() + j * k, k,
                c.data() + i * kColumns + j, kColumns, true);
        i += rows;
    }
    if (i > 0) return c;
    for (int j = 0; j < kColumns; j += kernel.columns) {
        kernel.pack_transposed(b.data() + j * k, k, k, panel.data());
        for (i = 0; i < kRows; i += kernel.rows)
            kernel.run(k, a.data() + i * k, k, 1, panel.data(), c.data() + i * kColumns + j, kColumns, true);
    }
    return c;
}

// Checks the logic of kernels whose instructions this CPU may lack, with AVX2 instructions.
void check_other_widths() {
    if (cpu_kernel() == CpuKernel::portable) return;
    for (const int64_t k : {1, 7, 64, 253}) {
        const auto a = draw(12 * k), b = draw(32 * k);
        const auto expected = run_by_kernel(gemm_avx2, {}, a, b, k);
        std::string problem;
        for (const std::vector<int> & few : {std::vector<int>{}, {1, 2, 3, 6}, {8, 4}, {7, 5}}) {
            for (const GemmKernel * kernel : {&gemm_avx2, &gemm_avx512_in_halves}) {
                if (run_by_kernel(*kernel, few, a, b, k) != expected)
                    problem = few.empty() ? "the tile differs from AVX2's" : "few rows differ from the AVX2 tile";
            }
        }
        Digest digest;
        digest.add(expected);
        report("AVX-512 in halves, sums of " + std::to_string(k), digest, problem);
    }
    const Digest fours = run_rows(row_in_fours);
    report("softmax and gates in fours", fours,
        fours.value() == run_rows(row_kernel()).value() ? "" : "differ from " + std::string(cpu_kernel_name()));
}

#else

void check_other_widths() {}

#endif

}  // namespace

int main() {
    // Fills ggml's table of F16 values.
    ggml_free(ggml_init({1024, nullptr, true}));
    check_rows();
    for (const auto & [n, k] : {std::pair<int64_t, int64_t>{72, 300}, {75, 300}, {16, 257}, {200, 33}}) {
        check_forward(GGML_TYPE_F32, n, k);
        check_forward(GGML_TYPE_F16, n, k);
        check_forward(GGML_TYPE_BF16, n, k);
    }
    // Two blocks of the sum and a remainder; columns in eights, and not.
    for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
             GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        const int64_t block = ggml_blck_size(type), k = block == 32 ? 1312 : 1280;
        if (!has_integer_weights(type)) continue;
        for (const auto & [n, size] : {std::pair<int64_t, int64_t>{72, k}, {75, k}, {16, block}})
            check_stored(type, n, size);
    }
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
             GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        check_backward(type, false);
        if (fits_integers(type, true, 96)) check_backward(type, true);
    }
    check_other_widths();
}
