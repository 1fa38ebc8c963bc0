#include "vision/tower_attention.h"

#include <algorithm>
#include <vector>

#include "cpu/gemm.h"
#include "math/softmax.h"

namespace cria {

namespace {

// Queries of a block: a multiple of every kernel's rows. Keys and values are packed once per block.
constexpr int64_t kBlockRows = 96;

struct Workspace {
    GemmWorkspace gemm;
    std::vector<float> scores;
};

// Queries [begin, end), which all see the keys [first, last).
struct Block {
    int64_t begin, end, first, last;
};

std::vector<Block> plan_blocks(const cria_tower_attention & a) {
    std::vector<Block> blocks;
    for (int64_t begin = 0; begin < a.q.tokens;) {
        Block block{begin, std::min(begin + kBlockRows, a.q.tokens), 0, a.k.tokens};
        if (a.windows) {
            const int32_t * const window = a.windows + 2 * begin;
            const auto is_same = [&](int64_t query) { return std::equal(window, window + 2, a.windows + 2 * query); };
            block.first = window[0];
            block.last = window[1];
            int64_t end = begin + 1;
            while (end < block.end && is_same(end)) end++;
            block.end = end;
        }
        blocks.push_back(block);
        begin = block.end;
    }
    return blocks;
}

const float * find(const cria_tower_vectors & vectors, int64_t token, int64_t head) {
    return vectors.data + token * vectors.token_step + head * vectors.head_step;
}

void attend(const cria_tower_attention & a, const Block & b, int64_t head, Workspace & w) {
    const int64_t D = a.head_size, rows = b.end - b.begin, keys = b.last - b.first, kv = head * a.k.heads / a.q.heads;
    w.scores.resize(std::max(w.scores.size(), size_t(rows * keys)));
    float * const scores = w.scores.data();
    const auto multiply = [&](const Gemm & gemm) { run_gemm(gemm, 0, 1, w.gemm); };
    multiply({rows, keys, D, find(a.q, b.begin, head), a.q.token_step, 1, find(a.k, b.first, kv), GGML_TYPE_F32, 1,
        a.k.token_step, scores, keys, false});
    for (int64_t row = 0; row < rows; row++) softmax_in_place(scores + row * keys, int(keys), a.scale);
    multiply({rows, D, keys, scores, keys, 1, find(a.v, b.first, kv), GGML_TYPE_F32, a.v.token_step, 1,
        a.out + (b.begin * a.q.heads + head) * D, a.q.heads * D, false});
}

}  // namespace

void attend_tower(const cria_tower_attention * attention, int32_t thread, int32_t threads) {
    // Belongs to one of ggml's threads, which lives as long as one encoding, or to the projector's own thread.
    thread_local Workspace workspace;
    const cria_tower_attention & a = *attention;
    const std::vector<Block> blocks = plan_blocks(a);
    const int64_t units = int64_t(blocks.size()) * a.q.heads;
    // Heads of one block are consecutive: their keys are adjacent.
    for (int64_t unit = thread; unit < units; unit += threads)
        attend(a, blocks[size_t(unit / a.q.heads)], unit % a.q.heads, workspace);
}

}  // namespace cria
