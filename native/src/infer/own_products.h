// Computes the products of llama.cpp's graphs on the CPU with the trainer's kernels (cpu/gemm.h): attention's, with its
// softmax, and those with plain weights of the types of has_own_product(), experts' among them. Sampler and trainer
// then round alike, and a row's bits do not depend on the number of rows, whereas ggml uses different kernels for one
// row and for many. So KV is a function of the tokens up to it, whether they were evaluated in a prompt or after being
// sampled. Many rows are faster too. It changes nodes just before they are computed: a product becomes a custom
// operation, which runs in ggml's threads. Weights that ggml has repacked, and weights of other types, are left to
// ggml.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cpu/gemm.h"

struct ggml_tensor;
struct llama_model;

namespace cria {

// Consecutive rows of a batch that use one version of an adapter: its values of each factor.
struct FactorRows {
    int64_t rows;
    const std::vector<ggml_tensor *> * values;
};

// The rows of a batch whose results are used: of each stream, a block of `rows` consecutive rows, the first ones.
struct StreamRows {
    int64_t rows = 0;
    std::vector<int32_t> used;  // by stream
};

class OwnProducts {
   public:
    // With `same_bits` a row's bits are the same in every batch. Without it, products of few rows with weights in
    // floats are left to ggml, which is faster there.
    OwnProducts(int threads, bool same_bits);
    OwnProducts(const OwnProducts &) = delete;
    OwnProducts & operator=(const OwnProducts &) = delete;

    // Whether this class computes products with this weight, or with all of this model's.
    static bool cover(const ggml_tensor * weight);
    static bool cover(const llama_model * model);

    // Whether rows of one batch may use different values of these tensors, the factors of an adapter.
    static bool can_mix(const std::vector<ggml_tensor *> & factors);

    // A ggml_backend_sched_eval_callback that never asks to be called back, so that the graph still runs in one piece;
    // `self` is the OwnProducts, which must outlive the context.
    static bool on_node(ggml_tensor * node, bool ask, void * self);

   private:
    struct Workspace {
        GemmWorkspace gemm;
        std::vector<float> rounded;  // activations rounded to F16
        std::vector<float> activations, results;  // of used rows
        std::vector<int32_t> rows;  // by expert
    };
    void take(ggml_tensor * node);
    bool is_mixed(const ggml_tensor * w) const { return !mixed_rows_.empty() && factor_index_.count(w) > 0; }
    void run_mixed_product(Gemm gemm, size_t factor, int thread, int threads);
    // Whether a node of so many rows computes only those in used_rows_.
    bool skips_rows(int64_t rows) const { return !used_rows_.empty() && rows == stream_rows_.rows * streams(); }
    int64_t streams() const { return int64_t(stream_rows_.used.size()); }
    // The rows of a stream's tokens that an attention node computes: the first ones.
    int64_t count_used(const ggml_tensor * node, int64_t stream) const;
    // A product with a weight as it is stored.
    static void run_product(Gemm gemm, int part, int parts, Workspace & workspace);
    void run_used_rows(ggml_tensor * node, int thread, int threads);
    template <typename Multiply>
    void for_each_product(ggml_tensor * node, int thread, int threads, const Multiply & multiply);
    static void run_geglu(ggml_tensor * node, int thread, int threads, void * self);
    static void run_weight_product(ggml_tensor * node, int thread, int threads, void * self);
    static void run_expert_rows(ggml_tensor * node, int thread, int threads, void * self);
    static void multiply_scores(ggml_tensor * node, int thread, int threads, void * self);
    static void weigh_scores(ggml_tensor * node, int thread, int threads, void * self);
    static void mix_values(ggml_tensor * node, int thread, int threads, void * self);

    bool same_bits_;
    std::vector<Workspace> workspaces_;  // one per thread
    friend class MixedFactors;
    std::unordered_map<const ggml_tensor *, size_t> factor_index_;
    std::vector<FactorRows> mixed_rows_;
    int64_t mixed_count_ = 0;
    std::atomic<bool> missed_{false};
    friend class UsedRows;
    StreamRows stream_rows_;
    std::vector<int32_t> used_rows_, skipped_rows_;  // indices of rows; none is used: all are
};

// While it exists, products leave out the rows of the batch that are not used, and give zeros for them; their logits
// are undefined. Products with another number of rows, as when the batch is evaluated in parts, compute all of theirs.
class UsedRows {
   public:
    UsedRows(OwnProducts & products, StreamRows rows);
    ~UsedRows() { products_.used_rows_.clear(); }
    UsedRows(const UsedRows &) = delete;
    UsedRows & operator=(const UsedRows &) = delete;

   private:
    OwnProducts & products_;
};

// While it exists, rows multiply with values of their own in place of an adapter's factors. What is evaluated must be
// one physical batch with an output in each row, whose rows these are. The factors are the same ones each time.
class MixedFactors {
   public:
    MixedFactors(OwnProducts & products, const std::vector<ggml_tensor *> & factors, std::vector<FactorRows> rows);
    ~MixedFactors() { products_.mixed_rows_.clear(); }
    MixedFactors(const MixedFactors &) = delete;
    MixedFactors & operator=(const MixedFactors &) = delete;
    // Whether a product had another number of rows: the results are wrong then.
    bool missed() const { return products_.missed_; }

   private:
    OwnProducts & products_;
};

}  // namespace cria
