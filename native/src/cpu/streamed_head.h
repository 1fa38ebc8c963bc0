// What training reads of an LM head's logits, without ever holding them: the vocabulary passes by in tiles that stay in
// the cache, and a running maximum keeps each row's sums, as FlashAttention does (Dao et al. 2022, arXiv:2205.14135).
// The gradient of a logprob by its row's inputs x is (w_target - sum_j p_j w_j) / temperature: it needs no loss, so it
// is gathered in the same pass, and a backward pass only scales it.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/gemm.h"

namespace cria {

// logits[i, j] = sum_p x[i, p] w[j, p]; z = logits * scale.
struct StreamedHead {
    int64_t rows, width, vocab;
    const float * x;  // [rows, width], as the weights' type wants it: rounded to F16 for F16
    const void * w;  // [vocab, width] of F32, F16 or Q8_0
    ggml_type w_type;
    int64_t w_row;  // in bytes
    float scale;
    const int32_t * targets;
    bool with_slopes;
    bool with_squares;  // also sum the squared probabilities
};

bool can_stream_head(ggml_type type);

// What a share of the vocabulary holds for the rows.
struct HeadShare {
    std::vector<float> max, target;  // [rows]: the largest z; z of the target, -inf where another share has it
    std::vector<double> sum, weighted,
        squares;  // [rows]: over e = exp(z - max), of e, of e (z - max) and of e^2 (0 when not asked for)
    std::vector<float> mean;  // [rows, width]: sum of e w_j; empty without slopes
};

// Of one thread.
struct HeadWorkspace {
    std::vector<float> tile;
    GemmWorkspace gemm;
};

// Share `part` of `parts`. How many there are decides in which order sums are added; a row's bits do not depend on the
// others.
void run_head_share(const StreamedHead & head, int part, int parts, HeadShare & share, HeadWorkspace & workspace);

// What is read of a row: logprob of its target; entropy, and sum of the squares (0 when not asked for), of its
// probabilities.
struct HeadRow {
    float logprob, entropy, sum_squares;
};

// Row `i` of all shares together. `slope` [width] may be null.
HeadRow merge_head_row(const StreamedHead & head, const std::vector<HeadShare> & shares, int64_t i, float * slope);

}  // namespace cria
