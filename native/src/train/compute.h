// A backend to run graphs on, and small graphs that read and write tensors which outlive them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include "cpu/attention.h"

namespace cria {

struct BackendDeleter {
    void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); }
};
struct BufferDeleter {
    void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); }
};
struct AllocatorDeleter {
    void operator()(ggml_gallocr_t allocator) const { ggml_gallocr_free(allocator); }
};
struct ContextDeleter {
    void operator()(ggml_context * context) const { ggml_free(context); }
};
using BackendPtr = std::unique_ptr<ggml_backend, BackendDeleter>;
using BufferPtr = std::unique_ptr<ggml_backend_buffer, BufferDeleter>;
using AllocatorPtr = std::unique_ptr<ggml_gallocr, AllocatorDeleter>;
using ContextPtr = std::unique_ptr<ggml_context, ContextDeleter>;

// The device of the weights, with its threads and its abort flag.
class Compute {
   public:
    Compute(bool on_cpu, int threads);
    ggml_backend_t backend() const { return backend_.get(); }
    bool on_cpu() const { return on_cpu_; }
    int threads() const { return threads_; }
    AllocatorPtr make_allocator() const;
    std::atomic<bool> & abort_flag() { return abort_; }
    // What our own kernels need on one CPU thread.
    AttentionWorkspace & workspace(int thread) { return workspaces_[size_t(thread)]; }
    // Throws Error("aborted") or Error("compute-failed").
    void run(ggml_cgraph * graph);
    // Splits [0, count) over the CPU threads.
    void parallel(int64_t count, const std::function<void(int64_t begin, int64_t end)> & work);

   private:
    void run_on(ggml_backend_t backend, ggml_cgraph * graph);
    bool on_cpu_;
    int threads_;
    std::atomic<bool> abort_{false};
    BackendPtr backend_;
    std::vector<AttentionWorkspace> workspaces_;
    BackendPtr cpu_backend_;  // for parallel() when the weights are elsewhere
};

// Tensors that live as long as this object, in one buffer.
class TensorPool {
   public:
    explicit TensorPool(size_t max_tensors);
    ggml_tensor * add(ggml_type type, std::vector<int64_t> shape);
    // Allocates everything added so far, once. Throws Error("out-of-memory") with the number of bytes.
    void allocate(const Compute & compute, const char * purpose);
    size_t bytes() const { return buffer_ ? ggml_backend_buffer_get_size(buffer_.get()) : 0; }

   private:
    ContextPtr context_;
    BufferPtr buffer_;
};

// One graph, built, run and thrown away. Results are copied into tensors that live elsewhere.
class Graph {
   public:
    explicit Graph(Compute & compute, size_t max_nodes = 1024);
    bool on_cpu() const { return compute_.on_cpu(); }
    ggml_context * ctx() const { return context_.get(); }
    ggml_cgraph * graph() const { return graph_; }
    // A leaf with the memory of a tensor that another graph computed (using that one would pull its graph in).
    ggml_tensor * ref(ggml_tensor * tensor);
    void write(ggml_tensor * value, ggml_tensor * target);
    void accumulate(ggml_tensor * value, ggml_tensor * target);
    void expand(ggml_tensor * node) { ggml_build_forward_expand(graph_, node); }
    // A node that our own code computes, on the CPU. `work` is called by every thread with its number and their count.
    using Work = std::function<void(ggml_tensor * node, int thread, int threads, Compute & compute)>;
    ggml_tensor * custom(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Work work);
    // The same, changing `target` (a leaf) in place. The node's first input is the target.
    ggml_tensor * custom_inplace(ggml_tensor * target, std::vector<ggml_tensor *> inputs, Work work);
    // Checks every node against the device, allocates, computes. Throws Error("unsupported-operation").
    void run(ggml_gallocr_t allocator);

   private:
    struct Custom {
        Work work;
        Compute & compute;
    };
    static void run_custom(ggml_tensor * node, int thread, int threads, void * data);
    Compute & compute_;
    std::deque<Custom> customs_;  // nodes point into it
    ContextPtr context_;
    ggml_cgraph * graph_;
};

}  // namespace cria
