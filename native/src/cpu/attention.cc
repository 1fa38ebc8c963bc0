#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "math/softmax.h"

namespace cria {

namespace {

constexpr int64_t kBlockRows = 48;  // a multiple of every kernel's rows

struct Operand {
    const float * data;
    int64_t row, step;
};

void multiply_operands(int64_t m, int64_t n, int64_t k, Operand a, Operand b, float * c, int64_t c_row, bool accumulate,
    AttentionWorkspace & w) {
    if (m == 0 || n == 0 || k == 0) return;
    run_gemm(
        {m, n, k, a.data, a.row, a.step, b.data, GGML_TYPE_F32, b.row, b.step, c, c_row, accumulate}, 0, 1, w.gemm);
}

// The runs of keys that a block of queries sees.
struct BlockKeys {
    const KeyRun *first, *last;
    int64_t columns, window;
    BlockKeys(const AttentionPlan & plan, const AttentionBlock & b)
        : first(plan.runs.data() + b.first_run), last(plan.runs.data() + b.last_run),
          columns(last[-1].column + last[-1].count), window(plan.window) {}
    const KeyRun * begin() const { return first; }
    const KeyRun * end() const { return last; }
    // The end of the keys that the block's query `row` sees: all columns except those of the queries after it.
    int64_t seen_end(const AttentionBlock & b, int64_t row) const { return columns - (b.end - b.begin) + row + 1; }
    // Their begin: the other columns are outside the query's window.
    int64_t seen_begin(const AttentionBlock & b, int64_t row) const {
        return window > 0 ? std::max<int64_t>(seen_end(b, row) - window, 0) : 0;
    }
};

// scores [rows, columns] = Q K^T
void score_block(const AttentionTensors & t, const AttentionBlock & b, const BlockKeys & keys, int64_t head, int64_t kv,
    float * scores, AttentionWorkspace & w) {
    const int64_t rows = b.end - b.begin;
    for (const KeyRun & run : keys) {
        multiply_operands(rows, run.count, t.head_size, {t.q.at(b.query, head, t.head_size), t.q.token_step, 1},
            {t.k.at(b.offset + run.begin, kv, t.head_size), 1, t.k.token_step}, scores + run.column, keys.columns,
            false, w);
    }
}

// The values of all keys, one behind the other, so that they are added up as in a decode step, which knows no runs.
Operand gather_values(
    const AttentionTensors & t, const AttentionBlock & b, const BlockKeys & keys, int64_t kv, AttentionWorkspace & w) {
    const auto values_of = [&](const KeyRun & run) { return t.v.at(b.offset + run.begin, kv, t.head_size); };
    if (keys.end() - keys.begin() == 1) return {values_of(*keys.begin()), t.v.token_step, 1};
    const int64_t D = t.head_size;
    w.values.resize(std::max(w.values.size(), size_t(keys.columns * D)));
    for (const KeyRun & run : keys) {
        for (int64_t i = 0; i < run.count; i++)
            std::memcpy(
                w.values.data() + (run.column + i) * D, values_of(run) + i * t.v.token_step, size_t(D) * sizeof(float));
    }
    return {w.values.data(), D, 1};
}

void zero_padding(const AttentionPlan & plan, int64_t row, const HeadVectors & vectors, int64_t size) {
    if (!plan.all_queries) return;
    const size_t first = plan.rows[size_t(row)], last = plan.rows[size_t(row) + 1];
    const int64_t used = last > first ? plan.blocks[last - 1].end : 0;
    for (int64_t i = used; i < plan.row_length; i++) {
        std::memset(vectors.at(row * plan.row_length + i, 0, size), 0, size_t(vectors.heads * size) * sizeof(float));
    }
}

// Consecutive tokens [start, end) that each continue the one before; `until` is their common end, as in MicroBatch.
struct Segment {
    int64_t start, end, until;
};

// Adds the runs of keys that a block after `segment` sees: `path` holds the segments that it continues. Adjacent
// segments become one run, except for the last.
void add_runs(AttentionPlan & plan, const std::vector<Segment> & path, const Segment & segment, int64_t block_end) {
    const size_t first = plan.runs.size();
    int64_t columns = 0;
    const auto add = [&](int64_t begin, int64_t end) {
        plan.runs.push_back({begin, end - begin, columns});
        columns += end - begin;
    };
    for (const Segment & seen : path) {
        if (plan.runs.size() > first && plan.runs.back().begin + plan.runs.back().count == seen.start) {
            plan.runs.back().count += seen.end - seen.start;
            columns += seen.end - seen.start;
        } else {
            add(seen.start, seen.end);
        }
    }
    add(segment.start, block_end);
}

// Leaves out of the last block's runs, from `first` on, the keys outside the window of its first query. Returns their
// number.
int64_t skip_hidden(AttentionPlan & plan, size_t first, int64_t queries) {
    const KeyRun & last = plan.runs.back();
    const int64_t hidden = last.column + last.count - queries + 1 - plan.window;
    if (plan.window == 0 || hidden <= 0) return 0;
    const auto begin = plan.runs.begin() + std::ptrdiff_t(first);
    plan.runs.erase(begin,
        std::find_if(begin, plan.runs.end(), [&](const KeyRun & run) { return run.column + run.count > hidden; }));
    for (size_t i = first; i < plan.runs.size(); i++) plan.runs[i].column -= hidden;
    KeyRun & run = plan.runs[first];
    run.begin -= run.column;
    run.count += run.column;
    run.column = 0;
    return hidden;
}

}  // namespace

AttentionPlan plan_attention(const std::vector<int32_t> & ends, int64_t rows, int64_t row_length, int64_t window,
    const std::vector<int32_t> * queries) {
    AttentionPlan plan;
    plan.window = window;
    plan.row_length = row_length;
    plan.all_queries = !queries;
    size_t next = 0;  // of the queries
    std::vector<Segment> path;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t offset = row * row_length;
        const int32_t * until = ends.data() + offset;
        plan.rows.push_back(plan.blocks.size());
        path.clear();
        for (int64_t start = 0; start < row_length && until[start] > 0;) {
            Segment segment{start, start + 1, until[start]};
            while (segment.end < row_length && until[segment.end] == segment.until) segment.end++;
            while (!path.empty() && path.back().until <= start) path.pop_back();
            for (int64_t begin = start; begin < segment.end;) {
                int64_t stop = std::min(begin + kBlockRows, segment.end), query = offset + begin;
                if (queries) {
                    // The next run of queries, if it begins in this segment.
                    if (next == queries->size() || (*queries)[next] >= offset + segment.end) break;
                    query = int64_t(next);
                    begin = (*queries)[next++] - offset;
                    for (stop = begin + 1; stop < std::min(begin + kBlockRows, segment.end) && next < queries->size() &&
                                           (*queries)[next] == offset + stop;
                        next++)
                        stop++;
                }
                const size_t first_run = plan.runs.size();
                add_runs(plan, path, segment, stop);
                const int64_t hidden = skip_hidden(plan, first_run, stop - begin);
                plan.blocks.push_back({offset, begin, stop, query, first_run, plan.runs.size(), hidden});
                begin = stop;
            }
            path.push_back(segment);
            start = segment.end;
        }
    }
    plan.rows.push_back(plan.blocks.size());
    return plan;
}

void run_attention(
    const AttentionPlan & plan, const AttentionTensors & t, int thread, int threads, AttentionWorkspace & w) {
    const int64_t D = t.head_size, group = t.q.heads / t.k.heads;
    for (int64_t row = thread; row < int64_t(plan.rows.size()) - 1; row += threads) {
        zero_padding(plan, row, t.out, D);
        zero_padding(plan, row, t.log_sums, 1);
    }
    const size_t units = plan.blocks.size() * size_t(t.q.heads);
    for (size_t unit = size_t(thread); unit < units; unit += size_t(threads)) {
        const AttentionBlock & b = plan.blocks[unit / size_t(t.q.heads)];
        const int64_t head = int64_t(unit % size_t(t.q.heads)), kv = head / group, rows = b.end - b.begin;
        const BlockKeys keys(plan, b);
        w.scores.resize(std::max(w.scores.size(), size_t(rows * keys.columns)));
        score_block(t, b, keys, head, kv, w.scores.data(), w);
        for (int64_t r = 0; r < rows; r++) {
            float * line = w.scores.data() + r * keys.columns;
            const int64_t first = keys.seen_begin(b, r), seen = keys.seen_end(b, r);
            *t.log_sums.at(b.query + r, head, 1) =
                softmax_in_place(line + first, int(seen - first), t.scale, t.sinks ? t.sinks + head : nullptr);
            std::fill(line, line + first, 0.0f);
            std::fill(line + seen, line + keys.columns, 0.0f);
        }
        const Operand values = gather_values(t, b, keys, kv, w);
        // Cut where a decode step cuts the sum, which begins with the hidden keys.
        for (int64_t at = 0, end; at < keys.columns; at = end) {
            end = std::min(keys.columns, (b.hidden + at) / kSumDepth * kSumDepth + kSumDepth - b.hidden);
            multiply_operands(rows, D, end - at, {w.scores.data() + at, keys.columns, 1},
                {values.data + at * values.row, values.row, values.step}, t.out.at(b.query, head, D), t.out.token_step,
                at > 0, w);
        }
    }
}

void run_attention_backward(const AttentionPlan & plan, const AttentionTensors & t, const AttentionGradients & g,
    int thread, int threads, AttentionWorkspace & w) {
    const int64_t D = t.head_size, group = t.q.heads / t.k.heads, rows_of_batch = int64_t(plan.rows.size()) - 1;
    for (int64_t row = thread; row < rows_of_batch; row += threads) {
        zero_padding(plan, row, g.d_q, D);
        if (g.d_sinks.data) zero_padding(plan, row, g.d_sinks, 1);
    }
    // All queries of one row and KV head add to the same keys' gradients, so one thread takes them all.
    for (int64_t unit = thread; unit < rows_of_batch * t.k.heads; unit += threads) {
        const int64_t row = unit / t.k.heads, kv = unit % t.k.heads;
        for (int64_t i = 0; i < plan.row_length; i++) {
            for (const HeadVectors & d : {g.d_k, g.d_v})
                std::memset(d.at(row * plan.row_length + i, kv, D), 0, size_t(D) * sizeof(float));
        }
        for (size_t i = plan.rows[size_t(row)]; i < plan.rows[size_t(row) + 1]; i++) {
            const AttentionBlock & b = plan.blocks[i];
            const BlockKeys keys(plan, b);
            const int64_t rows = b.end - b.begin, first = b.query;
            w.scores.resize(std::max(w.scores.size(), size_t(rows * keys.columns)));
            w.d_scores.resize(std::max(w.d_scores.size(), size_t(rows * keys.columns)));
            float * const p = w.scores.data();
            float * const d = w.d_scores.data();
            for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
                const Operand d_out{g.d_out.at(first, head, D), g.d_out.token_step, 1};
                score_block(t, b, keys, head, kv, p, w);
                for (const KeyRun & run : keys) {
                    multiply_operands(rows, run.count, D, d_out,
                        {t.v.at(b.offset + run.begin, kv, D), 1, t.v.token_step}, d + run.column, keys.columns, false,
                        w);
                }
                for (int64_t r = 0; r < rows; r++) {
                    const int64_t from = keys.seen_begin(b, r), seen = keys.seen_end(b, r);
                    const float * o = t.out.at(first + r, head, D);
                    const float * d_o = g.d_out.at(first + r, head, D);
                    float delta = 0.0f;
                    for (int64_t j = 0; j < D; j++) delta += o[j] * d_o[j];
                    float * line = p + r * keys.columns;
                    float * d_line = d + r * keys.columns;
                    const float log_sum = *t.log_sums.at(first + r, head, 1);
                    if (g.d_sinks.data) *g.d_sinks.at(first + r, head, 1) = -std::exp(t.sinks[head] - log_sum) * delta;
                    softmax_again(line + from, int(seen - from), t.scale, log_sum);
                    softmax_backward(d_line + from, line + from, int(seen - from), t.scale, delta);
                    std::fill(line, line + from, 0.0f);
                    std::fill(d_line, d_line + from, 0.0f);
                    std::fill(line + seen, line + keys.columns, 0.0f);
                    std::fill(d_line + seen, d_line + keys.columns, 0.0f);
                }
                bool written = false;
                for (const KeyRun & run : keys) {
                    const int64_t key = b.offset + run.begin;
                    multiply_operands(run.count, D, rows, {p + run.column, 1, keys.columns}, {d_out.data, d_out.row, 1},
                        g.d_v.at(key, kv, D), g.d_v.token_step, true, w);
                    multiply_operands(run.count, D, rows, {d + run.column, 1, keys.columns},
                        {t.q.at(first, head, D), t.q.token_step, 1}, g.d_k.at(key, kv, D), g.d_k.token_step, true, w);
                    multiply_operands(rows, D, run.count, {d + run.column, keys.columns, 1},
                        {t.k.at(key, kv, D), t.k.token_step, 1}, g.d_q.at(first, head, D), g.d_q.token_step, written,
                        w);
                    written = true;
                }
            }
        }
    }
}

}  // namespace cria
