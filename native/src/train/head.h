// The LM head and the statistics of its logits, over chunks of rows: full logits are never held.
// logits z = W n / temperature; logprobs of the target and of candidates, entropy of p = softmax(z), on request sum
// p_j^2 and the most likely tokens; and the gradient
//   dz_j = [ sum_i c_i (delta_ij - p_j) - e p_j (log p_j + H) ] / temperature
// for c_i = dLoss/dlogprob of the target or of a candidate and e = dLoss/dentropy. On the CPU a frozen head is streamed
// (cpu/streamed_head.h), unless candidates or the most likely tokens are wanted: not even one chunk of its logits is
// held, and a backward pass without entropy terms recomputes none of them.
#pragma once

#include <vector>

#include "cria/trainer.h"
#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

// Tokens of which the head computes logprobs, after one hidden state each, and how.
struct ScoredTokens {
    std::vector<int32_t> targets;  // [R]
    std::vector<int32_t> candidates;  // [R, n], or empty
    float temperature = 1.0f;
    bool adapter = true;

    size_t candidates_of_each() const { return candidates.size() / targets.size(); }
};

class Head {
   public:
    Head(const Architecture & arch, const ParameterSet & parameters);
    // hidden [d, R] -> scores of R targets. `keep` keeps the logits for backward if one chunk holds them all.
    Scores forward(
        Compute & compute, ggml_tensor * hidden, const ScoredTokens & tokens, const ScoreRequest & request, bool keep);
    // Writes d_hidden [d, R] and accumulates parameter gradients.
    void backward(Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const ScoredTokens & tokens,
        const ScoreGradients & gradients);

   private:
    int64_t chunk_rows(int64_t rows) const;
    bool can_stream(const Compute & compute, bool adapter) const;
    void stream(Compute & compute, ggml_tensor * hidden, const ScoredTokens & tokens, bool keep, Scores & scores);
    void backward_from_slopes(
        Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const std::vector<float> & d_logprobs);
    // Logits, or their gradient, by the divisor of the architecture.
    ggml_tensor * divide(Graph & g, ggml_tensor * logits) const;
    void compute_logits(Compute & compute, ggml_tensor * hidden, int64_t begin, int64_t count, bool adapter);

    const Architecture & arch_;
    const ParameterSet & parameters_;
    AllocatorPtr allocator_;
    std::unique_ptr<TensorPool> pool_;
    ggml_tensor * logits_ = nullptr;  // [V, chunk]
    bool logits_kept_ = false;
    std::unique_ptr<TensorPool> slopes_pool_;
    ggml_tensor * slopes_ = nullptr;  // [d, R]: gradients of logprobs by normed hidden states, from forward to backward
};

}  // namespace cria
