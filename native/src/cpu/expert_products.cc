#include "cpu/expert_products.h"

#include <algorithm>
#include <cstring>

#include "cpu/tensor_products.h"

namespace cria {

namespace {

// Rows that are copied together: as many as pay for packing a matrix, and a multiple of kSumDepth.
constexpr int64_t kRowsTogether = 512;
static_assert(kRowsTogether % kSumDepth == 0, "a gradient's sums are cut as those of a whole product");

// Columns [begin, end) of the vectors of `count` rows.
void gather(const RowVectors & from, const int32_t * rows, int64_t count, int64_t begin, int64_t end, bool to_f16,
    std::vector<float> & out) {
    const int64_t width = end - begin;
    out.resize(size_t(count * width));
    for (int64_t i = 0; i < count; i++) {
        const float * in = from.at(rows[i]) + begin;
        float * row = out.data() + i * width;
        if (to_f16) gemm_kernel().round_to_f16(in, row, width);
        else std::memcpy(row, in, size_t(width) * sizeof(float));
    }
}

char * matrix_of(const ggml_tensor * w, int64_t expert) {
    return static_cast<char *>(w->data) + expert * int64_t(w->nb[2]);
}

// c [m, end - begin] = x [m, k] times these columns.
void multiply(const ExpertProduct & p, int64_t expert, const float * x, int64_t m, int64_t begin, int64_t end,
    float * c, GemmWorkspace & workspace) {
    const ggml_tensor * w = p.w;
    const int64_t n = end - begin, k = w->ne[p.transposed ? 1 : 0], row = int64_t(w->nb[1]);
    const char * matrix = matrix_of(w, expert) + (p.transposed ? int64_t(ggml_row_size(w->type, begin)) : begin * row);
    if (fits_integers(w->type, p.transposed, k)) {
        const IntegerGemm gemm{m, n, k, x, k, matrix, w->type, row, p.transposed, c, n, false};
        return run_integer_gemm(gemm, 0, 1, workspace.integers);
    }
    const int64_t step = w->type == GGML_TYPE_F32 ? floats(w->nb[1]) : row;
    const Gemm gemm{m, n, k, x, k, 1, matrix, w->type, p.transposed ? step : 1, p.transposed ? 1 : step, c, n, false};
    run_gemm(gemm, 0, 1, workspace);
}

void scatter(const float * from, const RowVectors & to, const int32_t * rows, int64_t count, int64_t begin, int64_t end,
    bool accumulate) {
    const int64_t width = end - begin;
    for (int64_t i = 0; i < count; i++, from += width) {
        float * out = to.at(rows[i]) + begin;
        if (!accumulate) std::memcpy(out, from, size_t(width) * sizeof(float));
        else
            for (int64_t j = 0; j < width; j++) out[j] += from[j];
    }
}

// Calls work(rows, count) for an expert's rows, some at a time.
template <typename Work>
void for_rows(const ExpertRows & rows, int64_t expert, const Work & work) {
    for (int64_t begin = rows.begins[expert]; begin < rows.begins[expert + 1]; begin += kRowsTogether)
        work(rows.rows + begin, std::min(kRowsTogether, rows.begins[expert + 1] - begin));
}

}  // namespace

ExpertRows group_rows(
    const int32_t * chosen, int64_t step, int64_t used, int64_t tokens, int64_t experts, int32_t * out) {
    int32_t *begins = out, *rows = out + experts + 1, *experts_of = rows + used * tokens;
    std::fill_n(begins, experts + 1, 0);
    for (int64_t row = 0; row < used * tokens; row++) {
        experts_of[row] = chosen[row / used * step + row % used];
        begins[experts_of[row] + 1]++;
    }
    for (int64_t expert = 0; expert < experts; expert++) begins[expert + 1] += begins[expert];
    // Each begin moves to the next expert's, and back.
    for (int64_t row = 0; row < used * tokens; row++) rows[begins[experts_of[row]]++] = int32_t(row);
    for (int64_t expert = experts; expert > 0; expert--) begins[expert] = begins[expert - 1];
    begins[0] = 0;
    return read_rows(out, experts, used * tokens);
}

ExpertRows read_rows(const int32_t * kept, int64_t experts, int64_t count) {
    return {experts, count, kept, kept + experts + 1, kept + experts + 1 + count};
}

bool has_own_expert_product(const ggml_tensor * w) {
    return is_float_type(w->type) || fits_integers(w->type, false, w->ne[0]);
}

int64_t expert_column_unit(const ExpertProduct & p) {
    const ggml_type type = p.w->type;
    // That of integers divides it: both are powers of two.
    return std::max<int64_t>(gemm_column_unit(type), ggml_blck_size(type));
}

void run_expert_product(const ExpertProduct & p, const ExpertRows & rows, int64_t expert, int64_t begin, int64_t end,
    GemmWorkspace & workspace) {
    const int64_t k = p.w->ne[p.transposed ? 1 : 0];
    // As ggml rounds activations before it multiplies F16 weights.
    const bool to_f16 = !p.transposed && p.w->type == GGML_TYPE_F16;
    for_rows(rows, expert, [&](const int32_t * numbers, int64_t count) {
        gather(p.x, numbers, count, 0, k, to_f16, workspace.gathered);
        workspace.product.resize(size_t(count * (end - begin)));
        multiply(p, expert, workspace.gathered.data(), count, begin, end, workspace.product.data(), workspace);
        scatter(workspace.product.data(), p.y, numbers, count, begin, end, p.accumulate);
    });
}

void add_expert_gradient(const RowVectors & x, const RowVectors & dy, const ExpertRows & rows, int64_t expert,
    const ggml_tensor * target, int64_t begin, int64_t end, GemmWorkspace & workspace) {
    const int64_t outputs = target->ne[1];
    float * matrix = reinterpret_cast<float *>(matrix_of(target, expert)) + begin;
    for_rows(rows, expert, [&](const int32_t * numbers, int64_t count) {
        gather(x, numbers, count, begin, end, false, workspace.gathered);
        gather(dy, numbers, count, 0, outputs, false, workspace.product);
        const Gemm gemm{outputs, end - begin, count, workspace.product.data(), 1, outputs, workspace.gathered.data(),
            GGML_TYPE_F32, end - begin, 1, matrix, floats(target->nb[1]), true};
        run_gemm(gemm, 0, 1, workspace);
    });
}

}  // namespace cria
