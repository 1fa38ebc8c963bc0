#include "train/head.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "cpu/streamed_head.h"
#include "math/likeliest.h"
#include "math/softmax.h"
#include "train/linear.h"
#include "train/weight_products.h"

namespace cria {

namespace {

constexpr size_t kLogitsBytes = size_t(128) << 20;

// Number of rows that process the vocabulary together. Each share holds their gradients: shares x rows x width floats.
constexpr int64_t kRowsTogether = 512;
// Fewer rows are not worth reading the weights again.
constexpr int64_t kLeastRows = 64;

// If the number of threads does not divide the shares, the rows are divided too, until each thread has equal work: a
// row's bits do not depend on other rows.
int64_t count_row_parts(int64_t rows, int threads) {
    return std::clamp<int64_t>(rows / kLeastRows, 1, threads / std::gcd(threads, kShares));
}

ggml_tensor * view_columns(Graph & g, ggml_tensor * t, int64_t begin, int64_t count) {
    ggml_tensor * leaf = g.ref(t);
    return ggml_view_2d(g.ctx(), leaf, leaf->ne[0], count, leaf->nb[1], size_t(begin) * leaf->nb[1]);
}

struct RowPart {
    StreamedHead head;
    int64_t first;
    std::vector<HeadShare> shares;
};

// Cuts rows [begin, end) into `count` parts; reuses the memory of `parts`.
void cut_rows(const StreamedHead & head, int64_t begin, int64_t end, int64_t count, std::vector<RowPart> & parts) {
    parts.resize(size_t(count));
    for (int64_t i = 0; i < count; i++) {
        RowPart & part = parts[size_t(i)];
        const int64_t rows = end - begin;
        part.first = begin + rows * i / count;
        part.head = head;
        part.head.rows = begin + rows * (i + 1) / count - part.first;
        part.head.x += part.first * head.width;
        part.head.targets += part.first;
        part.shares.resize(kShares);
    }
}

// Logits on the host, computed on any device.
class HostLogits {
   public:
    explicit HostLogits(ggml_tensor * logits) : logits_(logits) {
        if (ggml_backend_buffer_is_host(logits->buffer)) {
            data_ = static_cast<float *>(logits->data);
        } else {
            copy_.resize(size_t(ggml_nelements(logits)));
            ggml_backend_tensor_get(logits, copy_.data(), 0, copy_.size() * sizeof(float));
            data_ = copy_.data();
        }
    }
    float * row(int64_t i) const { return data_ + i * logits_->ne[0]; }
    void write_back() const {
        if (!copy_.empty()) ggml_backend_tensor_set(logits_, copy_.data(), 0, copy_.size() * sizeof(float));
    }

   private:
    ggml_tensor * logits_;
    std::vector<float> copy_;
    float * data_;
};

// Computes from a row's logits what the kernels of a device do not: sum of squares, candidates, the most likely tokens.
void score_further(const float * logits, int n_vocab, size_t row, const RowStats & stats, const ScoredTokens & tokens,
    const ScoreRequest & request, Scores & scores) {
    const float scale = 1.0f / tokens.temperature;
    if (request.squares) scores.squares[row] = sum_squared_probabilities(logits, n_vocab, scale, stats);
    const size_t count = tokens.candidates_of_each();
    for (size_t k = row * count; k < (row + 1) * count; k++)
        scores.candidates[k] = row_logprob(stats, logits[tokens.candidates[k]], scale);
    if (request.top == 0) return;
    std::vector<int32_t> top;
    // Logits that are not finite have no order: their logprobs are not finite either.
    if (std::isfinite(double(stats.max) + stats.log_sum)) {
        find_likeliest(logits, request.top_below > 0 ? request.top_below : n_vocab, size_t(request.top), top);
    } else {
        top.assign(size_t(request.top), 0);
    }
    for (size_t k = 0; k < top.size(); k++) {
        const size_t at = row * size_t(request.top) + k;
        scores.top_tokens[at] = top[k];
        scores.top_logprobs[at] = row_logprob(stats, logits[top[k]], scale);
    }
}

// One chunk's logits in the kernels' memory: they and the few numbers of each row stay on the device.
class DeviceRows {
   public:
    DeviceRows(Compute & compute, ggml_tensor * logits, const int32_t * targets, int64_t count, float scale)
        : kernels_(*compute.kernels()), pool_(3) {
        targets_ = pool_.add(GGML_TYPE_I32, {count});
        logprobs_ = pool_.add(GGML_TYPE_F32, {count});
        entropy_ = pool_.add(GGML_TYPE_F32, {count});
        pool_.allocate(compute, "the targets of a chunk");
        ggml_backend_tensor_set(targets_, targets, 0, ggml_nbytes(targets_));
        rows_ = {static_cast<float *>(logits->data), logits->ne[0], int32_t(count), int32_t(logits->ne[0]), scale,
            static_cast<const int32_t *>(targets_->data)};
        kernels_.enter();
    }
    void score(float * logprobs, float * entropy) {
        kernels_.logprobs(rows_, static_cast<float *>(logprobs_->data), static_cast<float *>(entropy_->data));
        kernels_.wait();
        ggml_backend_tensor_get(logprobs_, logprobs, 0, ggml_nbytes(logprobs_));
        ggml_backend_tensor_get(entropy_, entropy, 0, ggml_nbytes(entropy_));
    }
    // Overwrites the logits.
    void write_gradient(const float * d_logprobs, const float * d_entropy) {
        ggml_backend_tensor_set(logprobs_, d_logprobs, 0, ggml_nbytes(logprobs_));
        ggml_backend_tensor_set(entropy_, d_entropy, 0, ggml_nbytes(entropy_));
        kernels_.logit_gradient(
            rows_, static_cast<const float *>(logprobs_->data), static_cast<const float *>(entropy_->data));
        kernels_.wait();
    }

   private:
    const DeviceKernels & kernels_;
    TensorPool pool_;
    ggml_tensor *targets_, *logprobs_, *entropy_;
    cria_logit_rows rows_{};
};

}  // namespace

Head::Head(const Architecture & arch, const ParameterSet & parameters) : arch_(arch), parameters_(parameters) {}

int64_t Head::chunk_rows(int64_t rows) const {
    const int64_t fit = int64_t(kLogitsBytes / (size_t(arch_.n_vocab) * sizeof(float)));
    return std::min(rows, std::max<int64_t>(16, fit));
}

bool Head::can_stream(const Compute & compute, bool adapter) const {
    const Linear & output = parameters_.output();
    return compute.on_cpu() && !output.d_weight && !output.bias && !(adapter && output.lora_a) &&
           can_stream_head(output.weight->type);
}

void Head::stream(Compute & compute, ggml_tensor * hidden, const ScoredTokens & tokens, bool keep, Scores & scores) {
    const bool with_squares = !scores.squares.empty();
    const ggml_tensor * w = parameters_.output().weight;
    const int64_t R = hidden->ne[1], d = hidden->ne[0];
    TensorPool inputs(1);
    ggml_tensor * x = inputs.add(GGML_TYPE_F32, {d, R});
    inputs.allocate(compute, "the LM head's inputs");
    if (!allocator_) allocator_ = compute.make_allocator();
    Graph g(compute);
    ggml_tensor * normed = norm_forward(g, parameters_.output_norm(), g.ref(hidden), arch_.norm_eps);
    g.write(w->type == GGML_TYPE_F16 ? add_rounding_to_f16(g, normed) : normed, x);
    g.run(allocator_.get());
    if (keep) {
        slopes_pool_ = std::make_unique<TensorPool>(1);
        slopes_ = slopes_pool_->add(GGML_TYPE_F32, {d, R});
        slopes_pool_->allocate(compute, "gradients of logprobs");
    }
    const StreamedHead head{R, d, arch_.n_vocab, static_cast<const float *>(x->data), w->data, w->type,
        int64_t(w->nb[1]), 1.0f / arch_.logit_divisor, 1.0f / tokens.temperature, tokens.targets.data(), keep,
        with_squares};
    std::vector<HeadWorkspace> workspaces(size_t(compute.threads()));
    std::vector<RowPart> parts;
    for (int64_t begin = 0; begin < R; begin += kRowsTogether) {
        const int64_t end = std::min(begin + kRowsTogether, R);
        cut_rows(head, begin, end, count_row_parts(end - begin, compute.threads()), parts);
        std::atomic<size_t> next{0};
        compute.parallel(compute.threads(), [&](int64_t thread, int64_t) {
            for (size_t unit = next++; unit < parts.size() * kShares; unit = next++) {
                RowPart & part = parts[unit % parts.size()];
                const size_t share = unit / parts.size();
                run_head_share(part.head, int(share), part.shares[share], workspaces[size_t(thread)]);
            }
        });
        compute.parallel(end - begin, [&](int64_t from, int64_t to) {
            for (const RowPart & part : parts) {
                for (int64_t i = std::max(begin + from, part.first);
                    i < std::min(begin + to, part.first + part.head.rows); i++) {
                    const HeadRow row = merge_head_row(part.head, part.shares, i - part.first,
                        keep ? static_cast<float *>(slopes_->data) + i * d : nullptr);
                    scores.logprobs[size_t(i)] = row.logprob;
                    scores.entropy[size_t(i)] = row.entropy;
                    if (with_squares) scores.squares[size_t(i)] = row.sum_squares;
                }
            }
        });
    }
}

void Head::backward_from_slopes(
    Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const std::vector<float> & d_logprobs) {
    const int64_t d = hidden->ne[0];
    for (int64_t i = 0; i < hidden->ne[1]; i++) {
        float * slope = static_cast<float *>(slopes_->data) + i * d;
        for (int64_t j = 0; j < d; j++) slope[j] *= d_logprobs[size_t(i)];
    }
    Graph g(compute);
    g.write(norm_backward(g, parameters_.output_norm(), g.ref(hidden), g.ref(slopes_), arch_.norm_eps), d_hidden);
    g.run(allocator_.get());
}

ggml_tensor * Head::divide(Graph & g, ggml_tensor * logits) const {
    return arch_.logit_divisor == 1.0f ? logits : ggml_scale(g.ctx(), logits, 1.0f / arch_.logit_divisor);
}

void Head::compute_logits(Compute & compute, ggml_tensor * hidden, int64_t begin, int64_t count, bool adapter) {
    if (!logits_ || logits_->ne[1] < count) {
        pool_ = std::make_unique<TensorPool>(1);
        logits_ = pool_->add(GGML_TYPE_F32, {arch_.n_vocab, count});
        pool_->allocate(compute, "a chunk of logits");
    }
    if (!allocator_) allocator_ = compute.make_allocator();
    Graph g(compute);
    ggml_tensor * normed =
        norm_forward(g, parameters_.output_norm(), view_columns(g, hidden, begin, count), arch_.norm_eps);
    ggml_tensor * logits = divide(g, linear_forward(g, parameters_.output(), normed, adapter));
    g.expand(ggml_cpy(g.ctx(), logits, view_columns(g, logits_, 0, count)));
    g.run(allocator_.get());
}

Scores Head::forward(
    Compute & compute, ggml_tensor * hidden, const ScoredTokens & tokens, const ScoreRequest & request, bool keep) {
    const int64_t R = hidden->ne[1], chunk = chunk_rows(R);
    const float scale = 1.0f / tokens.temperature;
    Scores scores;
    scores.logprobs.resize(size_t(R));
    scores.entropy.resize(size_t(R));
    if (request.squares) scores.squares.resize(size_t(R));
    scores.candidates.resize(tokens.candidates.size());
    scores.top_tokens.resize(size_t(R * request.top));
    scores.top_logprobs.resize(size_t(R * request.top));
    slopes_ = nullptr;
    slopes_pool_.reset();
    logits_kept_ = false;
    const bool needs_rows = !tokens.candidates.empty() || request.top > 0;
    if (!needs_rows && can_stream(compute, tokens.adapter)) {
        stream(compute, hidden, tokens, keep, scores);
        return scores;
    }
    for (int64_t begin = 0; begin < R; begin += chunk) {
        const int64_t count = std::min(chunk, R - begin);
        compute_logits(compute, hidden, begin, count, tokens.adapter);
        if (compute.kernels()) {
            DeviceRows(compute, logits_, tokens.targets.data() + begin, count, scale)
                .score(scores.logprobs.data() + begin, scores.entropy.data() + begin);
            // The library has no kernel for anything else, so the logits are copied to the host.
            if (!needs_rows && !request.squares) continue;
        }
        const HostLogits host(logits_);
        compute.parallel(count, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; i++) {
                const size_t row = size_t(begin + i);
                const RowStats stats = softmax_stats(host.row(i), int(arch_.n_vocab), scale);
                score_further(host.row(i), int(arch_.n_vocab), row, stats, tokens, request, scores);
                if (compute.kernels()) continue;
                scores.logprobs[row] = row_logprob(stats, host.row(i)[tokens.targets[row]], scale);
                scores.entropy[row] = stats.entropy;
            }
        });
    }
    logits_kept_ = keep && chunk == R;
    return scores;
}

void Head::backward(Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const ScoredTokens & tokens,
    const ScoreGradients & gradients) {
    const int64_t R = hidden->ne[1], V = arch_.n_vocab, chunk = chunk_rows(R);
    const float scale = 1.0f / tokens.temperature;
    const std::vector<float> & d_entropy = gradients.entropy;
    const bool has_entropy = std::any_of(d_entropy.begin(), d_entropy.end(), [](float e) { return e != 0.0f; });
    if (slopes_ && !has_entropy) return backward_from_slopes(compute, hidden, d_hidden, gradients.logprobs);
    const size_t n_candidates = tokens.candidates_of_each();
    for (int64_t begin = 0; begin < R; begin += chunk) {
        const int64_t count = std::min(chunk, R - begin);
        if (!logits_kept_) compute_logits(compute, hidden, begin, count, tokens.adapter);
        // The library's kernel knows one token of each row.
        if (compute.kernels() && n_candidates == 0) {
            DeviceRows(compute, logits_, tokens.targets.data() + begin, count, scale)
                .write_gradient(gradients.logprobs.data() + begin, d_entropy.data() + begin);
        } else {
            const HostLogits host(logits_);
            compute.parallel(count, [&](int64_t from, int64_t to) {
                for (int64_t i = from; i < to; i++) {
                    const size_t row = size_t(begin + i), first = row * n_candidates;
                    softmax_gradient(host.row(i), int(V), scale,
                        {tokens.targets[row], gradients.logprobs[row], d_entropy[row], tokens.candidates.data() + first,
                            gradients.candidates.data() + first, n_candidates});
                }
            });
            host.write_back();
        }
        Graph g(compute);
        ggml_tensor * x = view_columns(g, hidden, begin, count);
        ggml_tensor * normed = norm_forward(g, parameters_.output_norm(), x, arch_.norm_eps);
        ggml_tensor * d_normed =
            linear_backward(g, parameters_.output(), normed, divide(g, view_columns(g, logits_, 0, count)));
        ggml_tensor * dx = norm_backward(g, parameters_.output_norm(), x, d_normed, arch_.norm_eps);
        g.expand(ggml_cpy(g.ctx(), dx, view_columns(g, d_hidden, begin, count)));
        g.run(allocator_.get());
    }
    logits_kept_ = false;
}

}  // namespace cria
