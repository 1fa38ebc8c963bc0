#include "cpu/state_rule.h"

#include <algorithm>
#include <cstring>

#include "math/row_kernel.h"

namespace cria {

namespace {

static_assert(kMostState == StateShape::kMostSize, "the kernels hold a row of a state");

template <typename Float>
Float * at(const StateVectors<Float> & vectors, int64_t token, int64_t offset) {
    return vectors.data + token * vectors.step + offset;
}

StateToken describe_token(const StateShape & shape, const StateTensors & tensors, int64_t token, int64_t head) {
    const int64_t key = shape.key_head(head) * shape.key_size;
    return {at(tensors.q, token, key), at(tensors.k, token, key), at(tensors.v, token, head * shape.value_size),
        *at(tensors.log_decay, token, head), *at(tensors.beta, token, head), int(shape.key_size), int(shape.value_size),
        shape.corrects};
}

// The states of one head in one row.
template <typename Float>
class States {
   public:
    States(const StateShape & shape, Float * states, int64_t first, int64_t head)
        : states_(states), head_(head), first_(first), floats_(shape.floats()), heads_(shape.value_heads) {}
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
Padding find_padding(const StatePlan & plan, int64_t row) {
    const std::vector<StateChunk> & chunks = plan.rows[size_t(row)];
    const int64_t begin = row * plan.row_length;
    return {chunks.empty() ? begin : chunks.back().first + chunks.back().count, begin + plan.row_length};
}

void run_head(const std::vector<StateChunk> & chunks, const StateShape & shape, const StateTensors & tensors,
    StateVectors<float> out, const States<float> & states, int64_t head) {
    for (size_t c = 0; c < chunks.size(); c++) {
        const StateChunk & chunk = chunks[c];
        if (chunk.start == StateChunk::begins) clear(states.before(c), states.floats());
        else if (chunk.start >= 0) std::memcpy(states.before(c), states.before(size_t(chunk.start)), states.bytes());
        float * state = states.before(c + 1);
        std::memcpy(state, states.before(c), states.bytes());
        for (int64_t token = chunk.first; token < chunk.first + chunk.count; token++)
            row_kernel().state_step(
                state, describe_token(shape, tensors, token, head), at(out, token, head * shape.value_size));
    }
}

void run_head_gradient(const std::vector<StateChunk> & chunks, const StateShape & shape, const StateTensors & tensors,
    const States<const float> & states, StateVectors<const float> d_out, const StateGradients & d, int64_t branches,
    float * scratch, int64_t head, int64_t part) {
    const int64_t floats = states.floats(), key = (part * shape.key_heads + shape.key_head(head)) * shape.key_size;
    // The gradient of the state behind a token; of those with several continuations; and the states within a chunk.
    float *d_state = scratch, *d_branches = scratch + floats, *within = d_branches + branches * floats;
    float unread[kMostState];
    clear(d_branches, branches * floats);
    for (size_t c = chunks.size(); c-- > 0;) {
        const StateChunk & chunk = chunks[c];
        if (c + 1 == chunks.size() || chunks[c + 1].start != StateChunk::continues) clear(d_state, floats);
        std::memcpy(within, states.before(c), states.bytes());
        for (int32_t i = 1; i < chunk.count; i++) {
            float * state = within + i * floats;
            std::memcpy(state, state - floats, states.bytes());
            row_kernel().state_step(state, describe_token(shape, tensors, chunk.first + i - 1, head), unread);
        }
        for (int32_t i = chunk.count - 1; i >= 0; i--) {
            const int64_t token = chunk.first + i;
            StateTokenGradient of_token{
                at(d.q, token, key), at(d.k, token, key), at(d.v, token, head * shape.value_size), 0.0f, 0.0f};
            row_kernel().state_gradient(within + i * floats, describe_token(shape, tensors, token, head),
                at(d_out, token, head * shape.value_size), d_state, of_token);
            *at(d.log_decay, token, head) = of_token.log_decay;
            *at(d.beta, token, head) = of_token.beta;
        }
        if (chunk.branch < 0) continue;
        // Later branches come first. The first branch follows its token, and goes on with the sum.
        float * sum = d_branches + chunk.branch * floats;
        for (int64_t i = 0; i < floats; i++) sum[i] += d_state[i];
        if (chunk.start == StateChunk::continues) std::memcpy(d_state, sum, states.bytes());
    }
}

}  // namespace

StatePlan plan_states(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length) {
    StatePlan plan;
    plan.row_length = row_length;
    plan.rows.resize(size_t(rows));
    for (int64_t row = 0; row < rows; row++) {
        std::vector<StateChunk> & chunks = plan.rows[size_t(row)];
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
            if (follows && !is_branch && chunks.back().count < StatePlan::kMostTokens) {
                chunks.back().count++;
                continue;
            }
            StateChunk chunk{first + i, 1, StateChunk::begins, -1};
            if (follows) chunk.start = StateChunk::continues;
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

int64_t state_scratch(const StatePlan & plan, const StateShape & shape) {
    return (1 + plan.branches + StatePlan::kMostTokens) * shape.floats();
}

void run_state_rule(const StatePlan & plan, const StateShape & shape, const StateTensors & tensors,
    StateVectors<float> out, float * states, int thread, int threads) {
    const int64_t heads = shape.value_heads, rows = int64_t(plan.rows.size());
    for (int64_t item = thread; item < rows * heads; item += threads) {
        const int64_t row = item / heads, head = item % heads;
        run_head(
            plan.rows[size_t(row)], shape, tensors, out, {shape, states, plan.first_state[size_t(row)], head}, head);
        const Padding padding = find_padding(plan, row);
        for (int64_t token = padding.first; token < padding.end; token++)
            clear(at(out, token, head * shape.value_size), shape.value_size);
    }
}

void run_state_gradient(const StatePlan & plan, const StateShape & shape, const StateTensors & tensors,
    const float * states, StateVectors<const float> d_out, const StateGradients & d, float * scratch, int thread,
    int threads) {
    const int64_t key_heads = shape.key_heads, parts = shape.parts(), rows = int64_t(plan.rows.size()),
                  sharing = shape.value_heads / key_heads;
    // One thread has the value heads of a part: their gradients of it are added in the heads' order.
    for (int64_t item = thread; item < rows * key_heads * parts; item += threads) {
        const int64_t row = item / (key_heads * parts), part = item % (key_heads * parts) / key_heads,
                      key = item % key_heads, keys = (part * key_heads + key) * shape.key_size;
        for (int64_t token = row * plan.row_length; token < (row + 1) * plan.row_length; token++) {
            clear(at(d.q, token, keys), shape.key_size);
            clear(at(d.k, token, keys), shape.key_size);
        }
        const Padding padding = find_padding(plan, row);
        for (int64_t i = part * sharing / parts; i < (part + 1) * sharing / parts; i++) {
            const int64_t head = shape.tiles ? i * key_heads + key : key * sharing + i;
            run_head_gradient(plan.rows[size_t(row)], shape, tensors,
                {shape, states, plan.first_state[size_t(row)], head}, d_out, d, plan.branches, scratch, head, part);
            for (int64_t token = padding.first; token < padding.end; token++) {
                clear(at(d.v, token, head * shape.value_size), shape.value_size);
                *at(d.log_decay, token, head) = *at(d.beta, token, head) = 0.0f;
            }
        }
    }
}

}  // namespace cria
