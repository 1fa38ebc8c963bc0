// A critic's head: v = w . norm(h) + b, the value of the state before each target token.
#pragma once

#include <vector>

#include "train/compute.h"
#include "train/parameters.h"

namespace cria {

class ValueHead {
   public:
    ValueHead(const Architecture & arch, const ParameterSet & parameters) : arch_(arch), parameters_(parameters) {}
    // hidden [d, R] -> values [R].
    void forward(Compute & compute, ggml_tensor * hidden, std::vector<float> & values);
    // Writes d_hidden [d, R] and accumulates parameter gradients.
    void backward(Compute & compute, ggml_tensor * hidden, ggml_tensor * d_hidden, const std::vector<float> & d_values);

   private:
    const Architecture & arch_;
    const ParameterSet & parameters_;
    AllocatorPtr allocator_;
};

}  // namespace cria
