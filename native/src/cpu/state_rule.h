// Layers with a state in place of attention: their rule over trees of tokens, and its gradient. A head's state is a
// matrix that each token decays and adds to,
//   S = decay S_before + k (beta v)^T,  output = S^T q
// (Mamba-2's, arXiv:2405.21060), or decays and corrects, with v - decay S_before^T k in place of v (the gated delta
// rule, arXiv:2412.06464, equation 10).
#pragma once

#include <cstdint>
#include <vector>

namespace cria {

// Tokens of a row, each the continuation of the one before. A token that several continue is the last one of its chunk.
struct StateChunk {
    enum Start : int32_t { continues = -1, begins = -2 };
    int32_t first, count;  // of the micro-batch
    // The state before the first token: that behind the chunk before (continues), zero (begins), or, of a second
    // branch, the state before that chunk of the row.
    int32_t start;
    int32_t branch;  // number, within the row, of the token with several continuations that the first token continues;
                     // or -1
};

// A micro-batch divided into chunks, on which the states that are kept depend.
struct StatePlan {
    static constexpr int32_t kMostTokens = 64;  // of a chunk
    std::vector<std::vector<StateChunk>> rows;
    std::vector<int64_t> first_state;  // of each row
    int64_t row_length = 0;
    int64_t branches = 0;  // most tokens with several continuations in a row
    int64_t states = 0;  // of a head: for each row, before each chunk and behind the last
};

// `ends` as MicroBatch has them.
StatePlan plan_states(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length);

struct StateShape {
    int64_t key_size, value_size, key_heads, value_heads;
    bool corrects;  // the delta rule
    // Value head h reads the queries and keys of head h % key_heads, else those of h / (value_heads / key_heads).
    bool tiles;

    int64_t key_head(int64_t value_head) const {
        return tiles ? value_head % key_heads : value_head / (value_heads / key_heads);
    }
    // Keys of many value heads have their gradient in parts, which threads compute: each of so many value heads.
    static constexpr int64_t kMostSharing = 8;
    int64_t parts() const { return (value_heads / key_heads + kMostSharing - 1) / kMostSharing; }
    static constexpr int64_t kMostSize = 256;  // of keys and values
    int64_t floats() const { return key_size * value_size; }
    int64_t keys() const { return key_size * key_heads; }
    int64_t values() const { return value_size * value_heads; }
};

// Vectors of all tokens; `step` floats from one token to the next.
template <typename Float>
struct StateVectors {
    Float * data;
    int64_t step;
};

struct StateTensors {
    // Per token: q and k [key_size, key_heads], scaled already if the layer scales them; v [value_size, value_heads].
    StateVectors<const float> q, k, v;
    StateVectors<const float> log_decay, beta;  // [value_heads]
};

// Those of q and k are sums of parts, [key_size, key_heads, parts].
struct StateGradients {
    StateVectors<float> q, k, v, log_decay, beta;
};

// Floats of memory that run_state_gradient needs for each thread.
int64_t state_scratch(const StatePlan & plan, const StateShape & shape);

// This thread's share of the outputs [value_size, value_heads] and of the states [value_size, key_size, value_heads,
// plan.states]. Padding gets zeros.
void run_state_rule(const StatePlan & plan, const StateShape & shape, const StateTensors & tensors,
    StateVectors<float> out, float * states, int thread, int threads);

// The gradients from that of the outputs. Their bits depend on the row alone.
void run_state_gradient(const StatePlan & plan, const StateShape & shape, const StateTensors & tensors,
    const float * states, StateVectors<const float> d_out, const StateGradients & gradients, float * scratch,
    int thread, int threads);

}  // namespace cria
