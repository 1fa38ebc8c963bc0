// Attention of training batches on the CPU: exact, block by block, without ever holding the S x S matrix. The backward
// pass computes the probabilities again from the rows' log-sums, as FlashAttention does (Dao et al. 2022,
// arXiv:2205.14135).
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/gemm.h"

namespace cria {

// Keys [begin, begin + count) of a row. Among all keys that a block sees they are the columns from `column` on.
struct KeyRun {
    int64_t begin, count, column;
};

// Queries [begin, end) of one row of the batch. They see all keys of the plan's runs [first_run, last_run) except in
// the last run, which ends at `end`: there each query sees the keys up to itself. All are places in the row; the row's
// first token is `offset` in the batch. The first query is number `query` among all queries. In front of the runs there
// are `hidden` keys, outside the windows of all of the block's queries.
struct AttentionBlock {
    int64_t offset, begin, end, query;
    size_t first_run, last_run;
    int64_t hidden;
};

// A row's blocks lie together: rows[i] to rows[i + 1] are those of row i. Padding is in no block.
struct AttentionPlan {
    std::vector<AttentionBlock> blocks;
    std::vector<KeyRun> runs;
    std::vector<size_t> rows;
    int64_t row_length = 0;
    int64_t window = 0;  // most keys that a query sees, its own included; 0: all. Runs then begin in the first query's.
    bool all_queries = true;
};

// `ends` as in MicroBatch; a token's position is one behind that of the token it continues. `queries`, if given, lists
// ascending places in the batch: only these tokens are queries.
AttentionPlan plan_attention(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length, int64_t window,
    const std::vector<int32_t> * queries = nullptr);

// Vectors of `size` floats, `heads` for each token: (token, head) lies at data + token * token_step + head * size.
struct HeadVectors {
    float * data;
    int64_t heads, token_step;
    float * at(int64_t token, int64_t head, int64_t size) const { return data + token * token_step + head * size; }
};

// One vector per query: q, out, log_sums. One per token: k, v.
struct AttentionTensors {
    int64_t head_size;
    float scale;
    HeadVectors q, k, v, out;
    HeadVectors log_sums;  // one float per head
    const float * sinks = nullptr;  // one for each head of q: a further logit, which has no value; null: none
};

struct AttentionGradients {
    HeadVectors d_out, d_q, d_k, d_v;  // the first two per query, the others per token
    HeadVectors d_sinks{};  // each query's part, one float per head; without data it is not computed
};

struct AttentionWorkspace {
    GemmWorkspace gemm;
    std::vector<float> scores, d_scores, values;
};

// Computes this thread's part. `out` and `log_sums` of padding become 0.
void run_attention(
    const AttentionPlan & plan, const AttentionTensors & t, int thread, int threads, AttentionWorkspace & w);

// Computes this thread's part. Overwrites every gradient.
void run_attention_backward(const AttentionPlan & plan, const AttentionTensors & t, const AttentionGradients & g,
    int thread, int threads, AttentionWorkspace & w);

}  // namespace cria
