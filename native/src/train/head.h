// The LM head and the statistics of its logits, over chunks of rows: full logits are never held.
// logits z = W n / temperature; logprob of the target, entropy of p = softmax(z), sum p_j^2 on request; and the
// gradient
//   dz_j = [ c (delta_j - p_j) - e p_j (log p_j + H) ] / temperature
// for c = dLoss/dlogprob and e = dLoss/dentropy. On the CPU a frozen head is streamed (cpu/streamed_head.h): not even
// one chunk of its logits is held, and a backward pass without entropy terms recomputes none of them.
#pragma once

#include <vector>

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

class Head {
   public:
    Head(const Architecture & arch, const ParameterSet & parameters);
    // hidden [d, R] -> logprobs, entropy, sum_squares [R]; sum_squares may be null. `keep` keeps the logits for
    // backward if one chunk holds them all.
    void forward(Compute & compute, ggml_tensor * hidden, const std::vector<int32_t> & targets, float temperature,
        bool adapter, bool keep, std::vector<float> & logprobs, std::vector<float> & entropy,
        std::vector<float> * sum_squares);
    // Writes d_hidden [d, R] and accumulates parameter gradients.
    void backward(Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const std::vector<int32_t> & targets,
        float temperature, bool adapter, const std::vector<float> & d_logprobs, const std::vector<float> & d_entropy);

   private:
    int64_t chunk_rows(int64_t rows) const;
    bool can_stream(const Compute & compute, bool adapter) const;
    void stream(Compute & compute, ggml_tensor * hidden, const std::vector<int32_t> & targets, float temperature,
        bool keep, std::vector<float> & logprobs, std::vector<float> & entropy, std::vector<float> * sum_squares);
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
