// Statistics of an LM head's logits for training, without holding the logits: the vocabulary is processed in tiles that
// stay in the cache, and a running maximum keeps each row's sums, as FlashAttention does (Dao et al. 2022,
// arXiv:2205.14135). The gradient of a logprob by its row's inputs x is (w_target - sum_j p_j w_j) / temperature. It
// does not depend on the loss, so the same pass collects it, and a backward pass only scales it.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/gemm.h"
#include "math/softmax.h"

namespace cria {

// logits[i, j] = factor * sum_p x[i, p] w[j, p]; z = logits * scale.
struct StreamedHead {
    int64_t rows, width, vocab;
    const float * x;  // [rows, width], in the precision that the weights' type needs: rounded to F16 for F16
    const void * w;  // [vocab, width] of a type with has_own_product()
    ggml_type w_type;
    int64_t w_row;  // in bytes
    float factor;  // of the logits, which are rounded then
    float scale;
    const int32_t * targets;
    bool with_slopes;
    bool with_squares;  // also sum the squared probabilities
};

bool can_stream_head(ggml_type type);

// Statistics of all rows over one share of the vocabulary.
struct HeadShare {
    std::vector<RunningSums> sums;  // [rows]; squares only with_squares
    std::vector<float> target;  // [rows]: z of the target, -inf if the target is in another share
    std::vector<float> mean;  // [rows, width]: sum of e w_j; empty without slopes
};

// Scratch memory of one thread.
struct HeadWorkspace {
    std::vector<float> tile;
    GemmWorkspace gemm;
};

// Computes share `part` of kShares. A row's bits do not depend on other rows.
void run_head_share(const StreamedHead & head, int part, HeadShare & share, HeadWorkspace & workspace);

// Results of a row: logprob of its target; entropy and sum of squares (0 unless with_squares) of its probabilities.
struct HeadRow {
    float logprob, entropy, sum_squares;
};

// Merges row `i` of all shares. `slope` [width] may be null.
HeadRow merge_head_row(const StreamedHead & head, const std::vector<HeadShare> & shares, int64_t i, float * slope);

}  // namespace cria
