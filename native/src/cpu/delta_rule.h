// The gated delta rule over trees of tokens, and its gradient (arXiv:2412.06464, equation 10). A head's state is a
// matrix that each token decays and corrects:
//   S = decay S_before + k (beta (v - decay S_before^T k))^T,  output = S^T q.
#pragma once

#include <cstdint>
#include <vector>

namespace cria {

// Tokens of a row, each the continuation of the one before. A token that several continue is the last one of its chunk.
struct DeltaChunk {
    enum Start : int32_t { continues = -1, begins = -2 };
    int32_t first, count;  // of the micro-batch
    // The state before the first token: that behind the chunk before (continues), zero (begins), or, of a second
    // branch, the state before that chunk of the row.
    int32_t start;
    int32_t branch;  // number, within the row, of the token with several continuations that the first token continues;
                     // or -1
};

// A micro-batch divided into chunks, on which the states that are kept depend.
struct DeltaPlan {
    static constexpr int32_t kMostTokens = 64;  // of a chunk
    std::vector<std::vector<DeltaChunk>> rows;
    std::vector<int64_t> first_state;  // of each row
    int64_t row_length = 0;
    int64_t branches = 0;  // most tokens with several continuations in a row
    int64_t states = 0;  // of a head: for each row, before each chunk and behind the last
};

// `ends` as MicroBatch has them.
DeltaPlan plan_delta(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length);

// Value head h reads the queries and keys of head h % key_heads.
struct DeltaShape {
    int64_t size, key_heads, value_heads;  // `size` of keys, values and each axis of a state
};

// Vectors of all tokens; `step` floats from one token to the next.
template <typename Float>
struct DeltaVectors {
    Float * data;
    int64_t step;
};

struct DeltaTensors {
    DeltaVectors<const float> q, k, v;  // [size, heads] of each token; queries are scaled
    DeltaVectors<const float> log_decay, beta;  // [value_heads]
};

struct DeltaGradients {
    DeltaVectors<float> q, k, v, log_decay, beta;
};

// Floats of memory that run_delta_gradient needs for each thread.
int64_t delta_scratch(const DeltaPlan & plan, const DeltaShape & shape);

// This thread's share of the outputs [size, value_heads] and of the states [size, size, value_heads, plan.states].
// Padding gets zeros.
void run_delta(const DeltaPlan & plan, const DeltaShape & shape, const DeltaTensors & tensors, DeltaVectors<float> out,
    float * states, int thread, int threads);

// The gradients from that of the outputs. Their bits depend on the row alone.
void run_delta_gradient(const DeltaPlan & plan, const DeltaShape & shape, const DeltaTensors & tensors,
    const float * states, DeltaVectors<const float> d_out, const DeltaGradients & gradients, float * scratch,
    int thread, int threads);

}  // namespace cria
