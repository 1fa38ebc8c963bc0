// Products with plain F32, F16 and Q8_0 weights by the trainer's kernels (cpu/gemm.h) in llama.cpp's own graph: what samples
// and what learns then round alike, each row has the same bits in every batch, and many rows are faster than by ggml.
// Works on nodes just before they are computed (see HeadFolder): a product becomes a custom operation, in ggml's threads.
// Weights that ggml has repacked, and those of other types, are left to it.
#pragma once

#include <vector>

#include "cpu/gemm.h"

struct ggml_tensor;
struct llama_model;

namespace cria {

class WeightProducts {
   public:
    // Products of fewer rows than `least_rows` are left to ggml, whose kernels for a row or two read weights only once.
    WeightProducts(int threads, int least_rows);
    WeightProducts(const WeightProducts &) = delete;
    WeightProducts & operator=(const WeightProducts &) = delete;

    // Whether all products with this model's weights can be taken.
    static bool cover(const llama_model * model);

    // Takes the node if it is such a product.
    void take(ggml_tensor * node);

   private:
    struct Workspace {
        GemmWorkspace gemm;
        std::vector<float> rounded;  // activations as F16 has them
    };
    static void compute(ggml_tensor * node, int thread, int threads, void * self);

    int64_t least_rows_;
    std::vector<Workspace> workspaces_;  // one a thread
};

}  // namespace cria
