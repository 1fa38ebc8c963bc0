// The products of llama.cpp's graphs on the CPU by the trainer's kernels (cpu/gemm.h): attention's, with its softmax,
// and those with plain F32, F16 and Q8_0 weights. What samples and what learns then round alike, and a row's bits do
// not depend on how many rows there are, where ggml takes one kernel for a row and another for many: KV is a function
// of the tokens up to it, whether they were evaluated in a prompt or after being sampled. Many rows are faster too.
// Works on nodes just before they are computed: a product becomes a custom operation, which runs in ggml's threads.
// Weights that ggml has repacked, and those of other types, are left to it.
#pragma once

#include <vector>

#include "cpu/gemm.h"

struct ggml_tensor;
struct llama_model;

namespace cria {

class OwnProducts {
   public:
    // With `same_bits` a row's bits are the same in every batch; else weights' products of few rows are left to ggml,
    // which is faster there.
    OwnProducts(int threads, bool same_bits);
    OwnProducts(const OwnProducts &) = delete;
    OwnProducts & operator=(const OwnProducts &) = delete;

    // Whether all products with this model's weights are of the kind that is taken.
    static bool cover(const llama_model * model);

    // A ggml_backend_sched_eval_callback that never asks to be called back, so that the graph still runs in one piece;
    // `self` is the OwnProducts, which must outlive the context.
    static bool on_node(ggml_tensor * node, bool ask, void * self);

   private:
    struct Workspace {
        GemmWorkspace gemm;
        std::vector<float> rounded;  // activations as F16 has them
    };
    void take(ggml_tensor * node);
    static void run_weight_product(ggml_tensor * node, int thread, int threads, void * self);
    static void multiply_scores(ggml_tensor * node, int thread, int threads, void * self);
    static void weigh_scores(ggml_tensor * node, int thread, int threads, void * self);
    static void mix_values(ggml_tensor * node, int thread, int threads, void * self);

    bool same_bits_;
    std::vector<Workspace> workspaces_;  // one a thread
};

}  // namespace cria
