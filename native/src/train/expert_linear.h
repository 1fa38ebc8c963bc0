// Linear layers with one matrix for each expert [in, out, experts], on the CPU. A row is a token's choice of an expert:
// T tokens that choose `used` experts each have R = T used rows. Vectors come one for each row or one for each token,
// as their count says.
#pragma once

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

struct ExpertChoice {
    ggml_tensor * experts;  // [used, T] I32
    ggml_tensor * rows;  // of each expert, as group_by_expert() gives them
};

// The rows by expert, from the experts that each token chose: numbers of cpu/expert_products.h.
ggml_tensor * group_by_expert(Graph & g, ggml_tensor * chosen, int64_t experts);

// x [in, R or T] -> [out, R], with the experts' biases [out, experts]. Computed as in llama.cpp's decode.
ggml_tensor * expert_linear_forward(
    Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * x, bool adapter);

// Adds parameter gradients but the biases', x [in, R or T], dy [out, R or T]; returns the rows' dx [in, R], or the sum
// of it and `sum`, which is overwritten.
ggml_tensor * expert_linear_backward(Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * x,
    ggml_tensor * dy, ggml_tensor * sum = nullptr);

// Adds the gradient of the biases from dy [out, R or T], times the weights of the rows [used, T] where given.
void expert_bias_backward(
    Graph & g, const Linear & layer, const ExpertChoice & choice, ggml_tensor * dy, ggml_tensor * weights = nullptr);

}  // namespace cria
