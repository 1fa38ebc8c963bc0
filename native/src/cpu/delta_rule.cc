#include "cpu/delta_rule.h"

#include <algorithm>
#include <cstring>

#include "math/row_kernel.h"

namespace cria {

namespace {

template <typename Float>
Float * at(const DeltaVectors<Float> & vectors, int64_t token, int64_t offset) {
    return vectors.data + token * vectors.step + offset;
}

DeltaToken describe_token(const DeltaShape & shape, const DeltaTensors & tensors, int64_t token, int64_t head) {
    const int64_t key = head % shape.key_heads * shape.size;
    return {at(tensors.q, token, key), at(tensors.k, token, key), at(tensors.v, token, head * shape.size),
        *at(tensors.log_decay, token, head), *at(tensors.beta, token, head), int(shape.size)};
}

// The states of one head in one row.
template <typename Float>
class States {
   public:
    States(const DeltaShape & shape, Float * states, int64_t first, int64_t head)
        : states_(states), head_(head), first_(first), floats_(shape.size * shape.size), heads_(shape.value_heads) {}
    Float * before(size_t chunk) const { return states_ + ((first_ + int64_t(chunk)) * heads_ + head_) * floats_; }
    int64_t floats() const { return floats_; }
    size_t bytes() const { return size_t(floats_) * sizeof(float); }

   private:
    Float * states_;
    int64_t head_, first_, floats_, heads_;
};

void clear(float * floats, int64_t count) { std::memset(floats, 0, size_t(count) * sizeof(float)); }

// The tokens behind the row's chunks: [first, end).
struct Padding {
    int64_t first, end;
};
Padding find_padding(const DeltaPlan & plan, int64_t row) {
    const std::vector<DeltaChunk> & chunks = plan.rows[size_t(row)];
    const int64_t begin = row * plan.row_length;
    return {chunks.empty() ? begin : chunks.back().first + chunks.back().count, begin + plan.row_length};
}

void run_head(const std::vector<DeltaChunk> & chunks, const DeltaShape & shape, const DeltaTensors & tensors,
    DeltaVectors<float> out, const States<float> & states, int64_t head) {
    for (size_t c = 0; c < chunks.size(); c++) {
        const DeltaChunk & chunk = chunks[c];
        if (chunk.start == DeltaChunk::begins) clear(states.before(c), states.floats());
        else if (chunk.start >= 0) std::memcpy(states.before(c), states.before(size_t(chunk.start)), states.bytes());
        float * state = states.before(c + 1);
        std::memcpy(state, states.before(c), states.bytes());
        for (int64_t token = chunk.first; token < chunk.first + chunk.count; token++)
            row_kernel().delta_step(
                state, describe_token(shape, tensors, token, head), at(out, token, head * shape.size));
    }
}

void run_head_gradient(const std::vector<DeltaChunk> & chunks, const DeltaShape & shape, const DeltaTensors & tensors,
    const States<const float> & states, DeltaVectors<const float> d_out, const DeltaGradients & d, int64_t branches,
    float * scratch, int64_t head) {
    const int64_t floats = states.floats(), key = head % shape.key_heads * shape.size;
    // The gradient of the state behind a token; of those with several continuations; and the states within a chunk.
    float *d_state = scratch, *d_branches = scratch + floats, *within = d_branches + branches * floats;
    float unread[kMostDelta];
    clear(d_branches, branches * floats);
    for (size_t c = chunks.size(); c-- > 0;) {
        const DeltaChunk & chunk = chunks[c];
        if (c + 1 == chunks.size() || chunks[c + 1].start != DeltaChunk::continues) clear(d_state, floats);
        std::memcpy(within, states.before(c), states.bytes());
        for (int32_t i = 1; i < chunk.count; i++) {
            float * state = within + i * floats;
            std::memcpy(state, state - floats, states.bytes());
            row_kernel().delta_step(state, describe_token(shape, tensors, chunk.first + i - 1, head), unread);
        }
        for (int32_t i = chunk.count - 1; i >= 0; i--) {
            const int64_t token = chunk.first + i;
            DeltaTokenGradient of_token{
                at(d.q, token, key), at(d.k, token, key), at(d.v, token, head * shape.size), 0.0f, 0.0f};
            row_kernel().delta_gradient(within + i * floats, describe_token(shape, tensors, token, head),
                at(d_out, token, head * shape.size), d_state, of_token);
            *at(d.log_decay, token, head) = of_token.log_decay;
            *at(d.beta, token, head) = of_token.beta;
        }
        if (chunk.branch < 0) continue;
        // Later branches come first. The first branch follows its token, and goes on with the sum.
        float * sum = d_branches + chunk.branch * floats;
        for (int64_t i = 0; i < floats; i++) sum[i] += d_state[i];
        if (chunk.start == DeltaChunk::continues) std::memcpy(d_state, sum, states.bytes());
    }
}

}  // namespace

DeltaPlan plan_delta(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length) {
    DeltaPlan plan;
    plan.row_length = row_length;
    plan.rows.resize(size_t(rows));
    for (int64_t row = 0; row < rows; row++) {
        std::vector<DeltaChunk> & chunks = plan.rows[size_t(row)];
        const int32_t * row_ends = ends.data() + row * row_length;
        const int32_t first = int32_t(row * row_length);
        std::vector<int32_t> open, parents;  // tokens that the next one may continue; -1 for no parent
        std::vector<int32_t> children(size_t(row_length), 0), branch(size_t(row_length), -1),
            chunk_behind(size_t(row_length), -1);  // by token: the chunk that follows it
        for (int32_t i = 0; i < row_length && row_ends[i] > 0; i++) {
            while (!open.empty() && row_ends[open.back()] <= i) open.pop_back();
            parents.push_back(open.empty() ? -1 : open.back());
            if (parents.back() >= 0) children[size_t(parents.back())]++;
            open.push_back(i);
        }
        int64_t branches = 0;
        for (int32_t i = 0; i < int32_t(parents.size()); i++) {
            const int32_t parent = parents[size_t(i)];
            const bool follows = parent >= 0 && parent == i - 1,
                       is_branch = parent >= 0 && children[size_t(parent)] > 1;
            if (follows && !is_branch && chunks.back().count < DeltaPlan::kMostTokens) {
                chunks.back().count++;
                continue;
            }
            DeltaChunk chunk{first + i, 1, DeltaChunk::begins, -1};
            if (follows) chunk.start = DeltaChunk::continues;
            else if (parent >= 0) chunk.start = chunk_behind[size_t(parent)];
            if (follows) chunk_behind[size_t(parent)] = int32_t(chunks.size());
            if (is_branch) {
                int32_t & number = branch[size_t(parent)];
                if (number < 0) number = int32_t(branches++);
                chunk.branch = number;
            }
            chunks.push_back(chunk);
        }
        plan.branches = std::max(plan.branches, branches);
        plan.first_state.push_back(plan.states);
        plan.states += int64_t(chunks.size()) + 1;
    }
    return plan;
}

int64_t delta_scratch(const DeltaPlan & plan, const DeltaShape & shape) {
    return (1 + plan.branches + DeltaPlan::kMostTokens) * shape.size * shape.size;
}

void run_delta(const DeltaPlan & plan, const DeltaShape & shape, const DeltaTensors & tensors, DeltaVectors<float> out,
    float * states, int thread, int threads) {
    const int64_t heads = shape.value_heads, rows = int64_t(plan.rows.size());
    for (int64_t item = thread; item < rows * heads; item += threads) {
        const int64_t row = item / heads, head = item % heads;
        run_head(
            plan.rows[size_t(row)], shape, tensors, out, {shape, states, plan.first_state[size_t(row)], head}, head);
        const Padding padding = find_padding(plan, row);
        for (int64_t token = padding.first; token < padding.end; token++)
            clear(at(out, token, head * shape.size), shape.size);
    }
}

void run_delta_gradient(const DeltaPlan & plan, const DeltaShape & shape, const DeltaTensors & tensors,
    const float * states, DeltaVectors<const float> d_out, const DeltaGradients & d, float * scratch, int thread,
    int threads) {
    const int64_t key_heads = shape.key_heads, rows = int64_t(plan.rows.size());
    // One thread has all value heads that share a key head: their gradients of it are added in the heads' order.
    for (int64_t item = thread; item < rows * key_heads; item += threads) {
        const int64_t row = item / key_heads, key = item % key_heads;
        for (int64_t token = row * plan.row_length; token < (row + 1) * plan.row_length; token++) {
            clear(at(d.q, token, key * shape.size), shape.size);
            clear(at(d.k, token, key * shape.size), shape.size);
        }
        const Padding padding = find_padding(plan, row);
        for (int64_t head = key; head < shape.value_heads; head += key_heads) {
            run_head_gradient(plan.rows[size_t(row)], shape, tensors,
                {shape, states, plan.first_state[size_t(row)], head}, d_out, d, plan.branches, scratch, head);
            for (int64_t token = padding.first; token < padding.end; token++) {
                clear(at(d.v, token, head * shape.size), shape.size);
                *at(d.log_decay, token, head) = *at(d.beta, token, head) = 0.0f;
            }
        }
    }
}

}  // namespace cria
