// Products with one matrix for each expert (mixtures of experts, arXiv:1701.06538). A token chooses some experts, and
// each choice is a row of the result: number token * used + choice. The rows of an expert are multiplied together, each
// with the bits that it has alone.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/gemm.h"
#include "ggml.h"

namespace cria {

// The rows by expert.
struct ExpertRows {
    int64_t experts, count;
    const int32_t * begins;  // [experts + 1], of each expert's part of `rows`
    const int32_t * rows;  // [count], ascending within an expert
    const int32_t * experts_of;  // [count], the expert of each row

    int64_t rows_of(int64_t expert) const { return begins[expert + 1] - begins[expert]; }
};

// Numbers in which the rows by expert are kept.
inline int64_t expert_rows_size(int64_t experts, int64_t count) { return experts + 1 + 2 * count; }
// chosen + i * step: the `used` experts of token i.
ExpertRows group_rows(
    const int32_t * chosen, int64_t step, int64_t used, int64_t tokens, int64_t experts, int32_t * out);
// Those that group_rows has written.
ExpertRows read_rows(const int32_t * kept, int64_t experts, int64_t count);

// One vector for each row, or for each `share` of them (1: for each).
struct RowVectors {
    float * data;
    int64_t step, share;
    float * at(int64_t row) const { return data + row / share * step; }
};

// y (+)= W x with the matrix of each row's expert, transposed W^T x.
struct ExpertProduct {
    const ggml_tensor * w;  // [inputs, outputs, experts], of any type; with integers, if fits_integers()
    bool transposed;
    RowVectors x, y;
    bool accumulate;
};

// Whether products W x with such matrices are computed here, and not by ggml.
bool has_own_expert_product(const ggml_tensor * w);
// Columns of a part of an expert's product begin at a multiple of this.
int64_t expert_column_unit(const ExpertProduct & product);
// Columns [begin, end) of one expert's rows.
void run_expert_product(const ExpertProduct & product, const ExpertRows & rows, int64_t expert, int64_t begin,
    int64_t end, GemmWorkspace & workspace);

// Columns [begin, end) of the gradient [inputs, outputs] of an expert's matrix in y = W x, which is added up in the
// order of its rows.
void add_expert_gradient(const RowVectors & x, const RowVectors & dy, const ExpertRows & rows, int64_t expert,
    const ggml_tensor * target, int64_t begin, int64_t end, GemmWorkspace & workspace);

}  // namespace cria
