#include "infer/own_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/expert_products.h"
#include "cpu/shared_range.h"
#include "cpu/tensor_products.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "llama-model.h"
#include "math/row_kernel.h"
#include "math/softmax.h"

namespace cria {

namespace {

// From this many rows on, our products of floats are faster than ggml's (AVX2, shapes of SmolLM2-135M). Those with
// quantized weights always are, or as fast.
constexpr int64_t kLeastRows = 8;

// Products of attention that each thread computes at least, or parts of them.
constexpr int64_t kTurns = 4;

// Columns of used rows that are computed together: a multiple of every kernel's unit.
constexpr int64_t kColumnsTogether = 512;

bool has_float_rows(const ggml_tensor * t) { return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float); }

// Plain weights in the computer's memory.
bool is_plain(const ggml_tensor * w) {
    const bool is_host = w->op == GGML_OP_NONE && w->buffer && ggml_backend_buffer_is_host(w->buffer);
    return is_host && ggml_is_contiguous(w) && has_own_product(w->type);
}

// One matrix for each expert, whose rows are whole blocks.
bool has_own_experts(const ggml_tensor * w) { return is_plain(w) && w->ne[3] == 1 && has_own_expert_product(w); }

bool is_expert_weight(const std::string & name) { return name.find("_exps.") != std::string::npos; }

bool is_float_matrix(const ggml_tensor * t) { return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t); }

// Evenly spaced rows, as in a matrix: layers with a state have rows of several sequences in a separate axis.
bool has_equal_steps(const ggml_tensor * t) {
    return t->ne[3] == 1 && (t->ne[2] == 1 || t->nb[2] == size_t(t->ne[1]) * t->nb[1]);
}

// Whether the node multiplies keys [size, cells, kv_heads, streams] by queries [size, tokens, heads, streams], or
// values [cells, size, kv_heads, streams] by softmax weights [cells, tokens, heads, streams]. Cells or sizes are
// contiguous.
bool is_attention(const ggml_tensor * node) {
    const ggml_tensor *cache = node->src[0], *rows = node->src[1];
    if (cache->op == GGML_OP_NONE || (cache->type != GGML_TYPE_F32 && cache->type != GGML_TYPE_F16)) return false;
    return cache->nb[0] == ggml_type_size(cache->type) && rows->ne[2] % cache->ne[2] == 0 &&
           rows->ne[3] == cache->ne[3];
}

template <typename T>
T * at(const ggml_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return reinterpret_cast<T *>(
        static_cast<char *>(t->data) + i1 * int64_t(t->nb[1]) + i2 * int64_t(t->nb[2]) + i3 * int64_t(t->nb[3]));
}

// Offset of a replaced softmax's scale, behind the parameters of a custom operation.
constexpr size_t kScaleOffset = 48;

void replace(ggml_tensor * node, ggml_custom_op_t function, void * self) {
    const ggml_custom_op_params params{function, GGML_N_TASKS_MAX, self};
    static_assert(sizeof params <= kScaleOffset && kScaleOffset + sizeof(float) <= GGML_MAX_OP_PARAMS);
    node->op = GGML_OP_CUSTOM;
    std::memcpy(node->op_params, &params, sizeof params);
}

float read_float(const ggml_tensor * node, size_t offset) {
    float value;
    std::memcpy(&value, reinterpret_cast<const char *>(node->op_params) + offset, sizeof value);
    return value;
}

bool is_replaced_by(const ggml_tensor * node, ggml_custom_op_t function) {
    ggml_custom_op_params params;
    std::memcpy(&params, node->op_params, sizeof params);
    return node->op == GGML_OP_CUSTOM && params.fun == function;
}

// The mask's row that is added to a token's scores. The mask is F32, with one stream for all or one for each.
const float * mask_row(const ggml_tensor * mask, int64_t token, int64_t stream) {
    return at<const float>(mask, token, 0, mask->ne[3] > 1 ? stream : 0);
}

// A row of evenly spaced ones.
float * row_of(const ggml_tensor * t, int64_t row) {
    return reinterpret_cast<float *>(static_cast<char *>(t->data) + row * int64_t(t->nb[1]));
}

// Number of cells up to the last one that a row of the mask does not hide, at least `least`.
int64_t count_seen(const float * hides, int64_t cells, int64_t least) {
    while (cells > least && hides[cells - 1] == -INFINITY) cells--;
    return cells;
}

// Number of cells up to the last one that any of the first tokens of a stream may see.
int64_t count_visible(const ggml_tensor * mask, int64_t tokens, int64_t stream) {
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; t++) count = count_seen(mask_row(mask, t, stream), mask->ne[0], count);
    return count;
}

// Whether the node is ggml's softmax of our scores with a mask that only hides cells, and perhaps a sink for each head.
bool is_masked_softmax(const ggml_tensor * node, ggml_custom_op_t scores) {
    const ggml_tensor *mask = node->src[1], *sinks = node->src[2];
    if (node->op != GGML_OP_SOFT_MAX || !mask || !is_replaced_by(node->src[0], scores)) return false;
    const bool plain = mask->type == GGML_TYPE_F32 && mask->ne[2] == 1 && (!sinks || is_float_matrix(sinks)) &&
                       read_float(node, sizeof(float)) == 0.0f;
    return plain && has_float_rows(node->src[0]) && has_float_rows(node);
}

}  // namespace

// Calls multiply(gemm, stream, part, parts) for each product of an attention node, with A, B and C set, and their rows.
// Heads that share a KV head are rows of one product when each has a single one. Few products are cut into parts, so
// that every thread has some.
template <typename Multiply>
void OwnProducts::for_each_product(ggml_tensor * node, int thread, int threads, const Multiply & multiply) {
    const ggml_tensor *cache = node->src[0], *rows = node->src[1];
    const int64_t group = rows->ne[2] / cache->ne[2];
    const auto heads_together = [&](int64_t tokens) { return tokens == 1 ? group : 1; };
    int64_t products = 0, turn = 0;
    for (int64_t stream = 0; stream < rows->ne[3]; stream++) {
        const int64_t tokens = count_used(node, stream);
        products += tokens > 0 ? rows->ne[2] / heads_together(tokens) : 0;
    }
    const int parts = threads == 1 ? 1 : int((kTurns * threads + products - 1) / std::max<int64_t>(products, 1));
    for (int64_t stream = 0; stream < rows->ne[3]; stream++) {
        const int64_t tokens = count_used(node, stream), together = heads_together(tokens);
        for (int64_t unit = 0; tokens > 0 && unit < rows->ne[2] / together * parts; unit++) {
            if (turn++ % threads != thread) continue;
            const int64_t head = unit / parts * together;
            Gemm gemm{};
            gemm.m = tokens * together;
            gemm.n = cache->ne[1];
            gemm.k = cache->ne[0];
            gemm.a = at<const float>(rows, 0, head, stream);
            gemm.a_row = floats(tokens == 1 ? rows->nb[2] : rows->nb[1]);
            gemm.a_step = 1;
            gemm.b = at<const char>(cache, 0, head / group, stream);
            gemm.b_type = cache->type;
            gemm.b_step = 1;
            gemm.b_column = cache->type == GGML_TYPE_F32 ? floats(cache->nb[1]) : int64_t(cache->nb[1]);
            gemm.c = at<float>(node, 0, head, stream);
            gemm.c_row = floats(tokens == 1 ? node->nb[2] : node->nb[1]);
            multiply(gemm, stream, int(unit % parts), parts);
        }
    }
}

int64_t OwnProducts::count_used(const ggml_tensor * node, int64_t stream) const {
    const bool skips =
        node->ne[3] == streams() && node->ne[1] == stream_rows_.rows && skips_rows(node->ne[1] * node->ne[3]);
    return skips ? stream_rows_.used[size_t(stream)] : node->ne[1];
}

OwnProducts::OwnProducts(int threads, bool same_bits) : same_bits_(same_bits), workspaces_(size_t(threads)) {}

bool OwnProducts::cover(const ggml_tensor * weight) {
    return is_plain(weight) && weight->ne[2] == 1 && weight->ne[3] == 1;
}

bool OwnProducts::cover(const llama_model * model) {
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        const bool is_covered = is_expert_weight(name) ? has_own_experts(tensor) : cover(tensor);
        if (tensor->ne[1] > 1 && !is_covered) return false;
    }
    return true;
}

// Experts' factors are multiplied by the rows that chose them.
bool OwnProducts::can_mix(const std::vector<ggml_tensor *> & factors) {
    return std::all_of(factors.begin(), factors.end(),
        [](const ggml_tensor * factor) { return factor->type == GGML_TYPE_F32 && cover(factor); });
}

MixedFactors::MixedFactors(
    OwnProducts & products, const std::vector<ggml_tensor *> & factors, std::vector<FactorRows> rows)
    : products_(products) {
    if (products.factor_index_.empty()) {
        for (size_t i = 0; i < factors.size(); i++) products.factor_index_[factors[i]] = i;
    }
    products.mixed_count_ = 0;
    for (const FactorRows & run : rows) products.mixed_count_ += run.rows;
    products.mixed_rows_ = std::move(rows);
    products.missed_ = false;
}

UsedRows::UsedRows(OwnProducts & products, StreamRows rows) : products_(products) {
    products.used_rows_.clear();
    products.skipped_rows_.clear();
    for (size_t s = 0; s < rows.used.size(); s++) {
        for (int64_t t = 0; t < rows.rows; t++) {
            const auto row = int32_t(int64_t(s) * rows.rows + t);
            (t < rows.used[s] ? products.used_rows_ : products.skipped_rows_).push_back(row);
        }
    }
    if (products.skipped_rows_.empty()) products.used_rows_.clear();
    products.stream_rows_ = std::move(rows);
}

bool OwnProducts::on_node(ggml_tensor * node, bool ask, void * self) {
    if (ask) static_cast<OwnProducts *>(self)->take(node);
    return false;
}

// A reused graph comes here again with the replacements of the first time.
void OwnProducts::take(ggml_tensor * node) {
    if (is_masked_softmax(node, multiply_scores)) {
        // Scores that the mask hides are not computed.
        node->src[0]->src[2] = node->src[1];
        const float scale = read_float(node, 0);
        replace(node, weigh_scores, this);
        std::memcpy(reinterpret_cast<char *>(node->op_params) + kScaleOffset, &scale, sizeof scale);
        return;
    }
    if (node->op == GGML_OP_GLU && ggml_get_glu_op(node) == GGML_GLU_OP_GEGLU && node->src[1] &&
        is_float_matrix(node) && is_float_matrix(node->src[0]) && is_float_matrix(node->src[1])) {
        replace(node, run_geglu, this);
        return;
    }
    if (node->op == GGML_OP_MUL_MAT_ID && has_own_experts(node->src[0]) && ggml_is_contiguous(node) &&
        is_float_matrix(node->src[1]) && (same_bits_ || has_integer_weights(node->src[0]->type))) {
        replace(node, run_expert_rows, this);
        return;
    }
    if (node->op != GGML_OP_MUL_MAT || !has_float_rows(node->src[1]) || !has_float_rows(node)) return;
    if (cover(node->src[0])) {
        const bool always = same_bits_ || has_integer_weights(node->src[0]->type) || is_mixed(node->src[0]);
        const int64_t least_rows = always ? 1 : kLeastRows;
        if (ggml_nrows(node) >= least_rows && has_equal_steps(node->src[1]) && has_equal_steps(node))
            replace(node, run_weight_product, this);
    } else if (is_attention(node)) {
        const bool mixes = node->src[1]->op == GGML_OP_SOFT_MAX || is_replaced_by(node->src[1], weigh_scores);
        replace(node, mixes ? mix_values : multiply_scores, this);
    }
}

// ggml takes GELU from a table of F16 values. Columns are cut in whole blocks, so that bits depend on the column alone.
void OwnProducts::run_geglu(ggml_tensor * node, int thread, int threads, void *) {
    const int64_t n = node->ne[0], begin = part_begin(n, 64, thread, threads),
                  end = part_begin(n, 64, thread + 1, threads);
    for (int64_t row = 0; row < ggml_nrows(node); row++) {
        const auto from = [&](const ggml_tensor * t) { return static_cast<float *>(t->data) + row * n + begin; };
        row_kernel().geglu(from(node->src[0]), from(node->src[1]), from(node), end - begin);
    }
}

void OwnProducts::run_weight_product(ggml_tensor * node, int thread, int threads, void * self) {
    OwnProducts & own = *static_cast<OwnProducts *>(self);
    const ggml_tensor *w = node->src[0], *x = node->src[1];
    const int64_t rows = ggml_nrows(x);
    Gemm gemm = describe_product(w, false, x, node, false);
    gemm.m = rows;
    if (own.is_mixed(w)) return own.run_mixed_product(gemm, own.factor_index_.at(w), thread, threads);
    if (own.skips_rows(rows)) return own.run_used_rows(node, thread, threads);
    run_product(gemm, thread, threads, own.workspaces_[size_t(thread)]);
}

void OwnProducts::run_product(Gemm gemm, int part, int parts, Workspace & workspace) {
    if (has_integer_weights(gemm.b_type)) {
        const IntegerGemm integers{gemm.m, gemm.n, gemm.k, gemm.a, gemm.a_row, gemm.b, gemm.b_type, gemm.b_column,
            false, gemm.c, gemm.c_row, false};
        return run_integer_gemm(integers, part, parts, workspace.gemm.integers);
    }
    if (gemm.b_type == GGML_TYPE_F16) {
        // As ggml and the trainer do.
        workspace.rounded.resize(size_t(gemm.m * gemm.k));
        for (int64_t i = 0; i < gemm.m; i++)
            gemm_kernel().round_to_f16(gemm.a + i * gemm.a_row, workspace.rounded.data() + i * gemm.k, gemm.k);
        gemm.a = workspace.rounded.data();
        gemm.a_row = gemm.k;
    }
    run_gemm(gemm, part, parts, workspace.gemm);
}

// Gathers the activations, multiplies some columns at a time, which then lie in the cache, and copies them to their
// rows. Threads share the columns, or the rows where there are few columns.
void OwnProducts::run_used_rows(ggml_tensor * node, int thread, int threads) {
    Workspace & workspace = workspaces_[size_t(thread)];
    const ggml_tensor *w = node->src[0], *x = node->src[1];
    const int64_t k = x->ne[0], n = w->ne[1],
                  unit = has_integer_weights(w->type)
                             ? integer_column_unit(describe_integer_product(w, false, x, nullptr, false))
                             : gemm_column_unit(w->type);
    const bool by_rows = n < 2 * threads * unit;
    const auto share = [&](int64_t total, int64_t size, bool is_shared, int64_t end) {
        return is_shared ? part_begin(total, size, thread + end, threads) : end * total;
    };
    const int64_t used = int64_t(used_rows_.size()), i_begin = share(used, 1, by_rows, 0),
                  rows = share(used, 1, by_rows, 1) - i_begin, j_begin = share(n, unit, !by_rows, 0),
                  j_end = share(n, unit, !by_rows, 1);
    const int32_t * const row = used_rows_.data() + i_begin;
    workspace.activations.resize(size_t(rows * k));
    for (int64_t i = 0; i < rows; i++)
        std::memcpy(workspace.activations.data() + i * k, row_of(x, row[i]), size_t(k) * sizeof(float));
    workspace.results.resize(size_t(rows * kColumnsTogether));
    for (int64_t j = j_begin; j < j_end && rows > 0; j += kColumnsTogether) {
        const int64_t columns = std::min(kColumnsTogether, j_end - j);
        float * const y = workspace.results.data();
        Gemm gemm = describe_product(w, false, x, node, false);
        gemm.m = rows;
        gemm.n = columns;
        gemm.a = workspace.activations.data();
        gemm.a_row = k;
        gemm.b = static_cast<const char *>(w->data) + j * int64_t(w->nb[1]);
        gemm.c = y;
        gemm.c_row = columns;
        run_product(gemm, 0, 1, workspace);
        for (int64_t i = 0; i < rows; i++)
            std::memcpy(row_of(node, row[i]) + j, y + i * columns, size_t(columns) * sizeof(float));
    }
    // Nobody reads the logits of the other rows.
    if (node->flags & GGML_TENSOR_FLAG_OUTPUT) return;
    const int64_t skipped = int64_t(skipped_rows_.size());
    for (int64_t i = share(skipped, 1, by_rows, 0); i < share(skipped, 1, by_rows, 1); i++)
        std::fill_n(row_of(node, skipped_rows_[size_t(i)]) + j_begin, j_end - j_begin, 0.0f);
}

void OwnProducts::run_mixed_product(Gemm gemm, size_t factor, int thread, int threads) {
    if (gemm.m != mixed_count_) {
        missed_ = true;
        return;
    }
    // Factors are narrow: threads that share the columns of a few rows wait for each other. They share the runs
    // instead.
    const bool shares_runs = mixed_rows_.size() >= 2 * size_t(threads);
    for (size_t i = 0; i < mixed_rows_.size(); i++) {
        gemm.m = mixed_rows_[i].rows;
        gemm.b = (*mixed_rows_[i].values)[factor]->data;
        if (!shares_runs) run_gemm(gemm, thread, threads, workspaces_[size_t(thread)].gemm);
        else if (int(i % size_t(threads)) == thread) run_gemm(gemm, 0, 1, workspaces_[size_t(thread)].gemm);
        gemm.a += gemm.m * gemm.a_row;
        gemm.c += gemm.m * gemm.c_row;
    }
}

// x [inputs, 1 or used, tokens], or one vector for all; the experts that each token chose [used, tokens].
void OwnProducts::run_expert_rows(ggml_tensor * node, int thread, int threads, void * self) {
    Workspace & workspace = static_cast<OwnProducts *>(self)->workspaces_[size_t(thread)];
    const ggml_tensor *w = node->src[0], *x = node->src[1], *chosen = node->src[2];
    const int64_t experts = w->ne[2], used = chosen->ne[0], tokens = chosen->ne[1];
    workspace.rows.resize(size_t(expert_rows_size(experts, used * tokens)));
    const ExpertRows rows = group_rows(static_cast<const int32_t *>(chosen->data),
        int64_t(chosen->nb[1] / sizeof(int32_t)), used, tokens, experts, workspace.rows.data());
    const auto vectors = [&](const ggml_tensor * t) {
        return RowVectors{static_cast<float *>(t->data), t->ne[0], used / t->ne[1]};
    };
    const ExpertProduct product{w, false, vectors(x), vectors(node), false};
    const int64_t columns = w->ne[1], unit = expert_column_unit(product),
                  begin = part_begin(columns, unit, thread, threads),
                  end = part_begin(columns, unit, thread + 1, threads);
    for (int64_t expert = 0; expert < experts && begin < end; expert++)
        run_expert_product(product, rows, expert, begin, end, workspace.gemm);
}

void OwnProducts::multiply_scores(ggml_tensor * node, int thread, int threads, void * self) {
    OwnProducts & own = *static_cast<OwnProducts *>(self);
    GemmWorkspace & workspace = own.workspaces_[size_t(thread)].gemm;
    const ggml_tensor * mask = node->src[2];
    own.for_each_product(node, thread, threads, [&](Gemm & gemm, int64_t stream, int part, int parts) {
        if (mask) {
            const int64_t cells = gemm.n;
            // Products of few rows are fast with multiples of eight.
            gemm.n = std::min(cells, (count_visible(mask, own.count_used(node, stream), stream) + 7) / 8 * 8);
            for (int64_t i = 0; part == 0 && i < gemm.m; i++)
                std::fill(gemm.c + i * gemm.c_row + gemm.n, gemm.c + i * gemm.c_row + cells, 0.0f);
        }
        run_gemm(gemm, part, parts, workspace);
    });
}

// Softmax over the cells that a token sees, computed as in the trainer; the other cells have weight zero.
void OwnProducts::weigh_scores(ggml_tensor * node, int thread, int threads, void * self) {
    const OwnProducts & own = *static_cast<OwnProducts *>(self);
    const ggml_tensor *scores = node->src[0], *mask = node->src[1], *sinks = node->src[2];
    const float scale = read_float(node, kScaleOffset);
    const int64_t cells = node->ne[0], heads = node->ne[2], all_heads = heads * node->ne[1] * node->ne[3],
                  begin = all_heads * thread / threads, end = all_heads * (thread + 1) / threads;
    // Rows of which this thread has some heads.
    for (int64_t i = begin / heads; i * heads < end; i++) {
        const int64_t token = i % node->ne[1], stream = i / node->ne[1];
        if (token >= own.count_used(node, stream)) continue;
        const float * hides = mask_row(mask, token, stream);
        const int64_t seen = count_seen(hides, cells, 0);
        int64_t first = 0;  // behind those outside a window
        while (first < seen && hides[first] == -INFINITY) first++;
        const bool all = std::all_of(hides + first, hides + seen, [](float value) { return value == 0.0f; });
        for (int64_t head = std::max(begin - i * heads, int64_t(0)); head < std::min(end - i * heads, heads); head++) {
            const float * in = at<const float>(scores, token, head, stream);
            float * out = at<float>(node, token, head, stream);
            if (all) {
                if (out != in) std::memcpy(out + first, in + first, size_t(seen - first) * sizeof(float));
            } else {
                for (int64_t cell = first; cell < seen; cell++) out[cell] = in[cell] * scale + hides[cell];
            }
            const float * sink = sinks ? static_cast<const float *>(sinks->data) + head : nullptr;
            if (seen > first) softmax_in_place(out + first, int(seen - first), all ? scale : 1.0f, sink);
            std::fill(out, out + first, 0.0f);
            std::fill(out + seen, out + cells, 0.0f);
        }
    }
}

void OwnProducts::mix_values(ggml_tensor * node, int thread, int threads, void * self) {
    OwnProducts & own = *static_cast<OwnProducts *>(self);
    GemmWorkspace & workspace = own.workspaces_[size_t(thread)].gemm;
    own.for_each_product(node, thread, threads, [&](Gemm & gemm, int64_t, int part, int parts) {
        // Hidden cells have weight zero, and leaving them out at the end changes no sum.
        int64_t cells = 0;
        for (int64_t i = 0; i < gemm.m; i++) {
            int64_t end = gemm.k;
            while (end > cells && gemm.a[i * gemm.a_row + end - 1] == 0.0f) end--;
            cells = end;
        }
        gemm.k = std::max<int64_t>(cells, 1);
        run_gemm(gemm, part, parts, workspace);
    });
    const int64_t heads = node->ne[2];
    for (int64_t i = thread; i < heads * node->ne[3]; i += threads) {
        for (int64_t token = own.count_used(node, i / heads); token < node->ne[1]; token++)
            std::fill_n(at<float>(node, token, i % heads, i / heads), node->ne[0], 0.0f);
    }
}

}  // namespace cria
