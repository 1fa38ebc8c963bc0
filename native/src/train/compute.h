// A backend to run graphs on, and small graphs that read and write longer-lived tensors.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include "cpu/attention.h"
#include "cria/model.h"
#include "threads/thread_choice.h"
#include "threads/thread_pool.h"
#include "train/device_kernels.h"

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
    explicit Compute(const Model & model);
    ggml_backend_t backend() const { return backend_.get(); }
    // Whether our own CPU code may compute nodes of graphs; false for an emulated device.
    bool on_cpu() const { return on_cpu_; }
    // Our own kernels on another device; null where ggml's operations do all the work.
    const DeviceKernels * kernels() const { return kernels_.get(); }
    bool supports(const ggml_tensor * node) const;
    // While true, graphs are only checked, not run.
    bool only_ask = false;
    // The reason for not using the kernels although they exist; else empty.
    std::string notice;
    // The most threads that run a graph; `choice_` may use fewer.
    int threads() const { return threads_; }
    AllocatorPtr make_allocator() const;
    std::atomic<bool> & abort_flag() { return abort_; }
    // Scratch memory of our own kernels for one CPU thread.
    AttentionWorkspace & workspace(int thread) { return workspaces_[size_t(thread)]; }
    // Throws Error("aborted") or Error("compute-failed").
    void run(ggml_cgraph * graph);
    // From now on each graph is run with this mutex held, so that it and decode steps take turns on the cores; null:
    // none.
    void take_turns(FairMutex * turns) { turns_ = turns; }
    // Splits [0, count) over CPU threads, at most threads().
    void parallel(int64_t count, const std::function<void(int64_t begin, int64_t end)> & work);

   private:
    void run_on(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind);
    // By at most so many threads.
    void run_now(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind, int threads);
    ggml_status compute(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind, int threads);
    bool on_cpu_;
    int threads_;
    ThreadPool pool_;  // outlives the backends
    ThreadChoice choice_;
    std::vector<std::string> refused_;  // by an emulated device
    bool (*has_operation_)(const ggml_tensor *) = nullptr;  // of an emulated device
    std::unique_ptr<DeviceKernels> kernels_;
    std::atomic<bool> abort_{false};
    FairMutex * turns_ = nullptr;
    BackendPtr backend_;
    std::vector<AttentionWorkspace> workspaces_;
    int runs_ = 0;  // graphs that the device has computed
    // Vulkan on a CPU, by Mesa 22.3: it reads descriptors that a shader has no use for. ggml fills sets of them again
    // and again, and leaves in them what the last shader had more: buffers that may have been freed, and the heap is
    // damaged. Each graph then runs by a backend, and sets, of its own. (Mesa 25 reads what the shader uses.)
    bool needs_own_sets_ = false;
    BackendPtr cpu_backend_;  // for parallel() when the weights are on another device
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

// Converted forms of a tensor that products read.
enum class Derived { f16, q8, integers };

// One graph that is built, run and discarded. Results are copied into longer-lived tensors.
class Graph {
   public:
    explicit Graph(Compute & compute, size_t max_nodes = 1024);
    bool on_cpu() const { return compute_.on_cpu(); }
    int threads() const { return compute_.threads(); }
    const DeviceKernels * kernels() const { return compute_.kernels(); }
    ggml_context * ctx() const { return context_.get(); }
    ggml_cgraph * graph() const { return graph_; }
    // A leaf with the memory of a tensor that another graph computed (using that tensor itself would pull its graph
    // in).
    ggml_tensor * ref(ggml_tensor * tensor);
    void write(ggml_tensor * value, ggml_tensor * target);
    void accumulate(ggml_tensor * value, ggml_tensor * target);
    // Whether the device has the operation of this node.
    bool supports(const ggml_tensor * node) const { return compute_.supports(node); }
    void expand(ggml_tensor * node) { ggml_build_forward_expand(graph_, node); }
    // A node that our own code computes, on the CPU. Every thread calls `work` with its number and their count.
    using Work = std::function<void(ggml_tensor * node, int thread, int threads, Compute & compute)>;
    ggml_tensor * custom(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Work work);
    // The same, but changes `target` (a leaf) in place. The node's first input is the target.
    ggml_tensor * custom_inplace(ggml_tensor * target, std::vector<ggml_tensor *> inputs, Work work);
    // A node that several others read: the result of `make` at the first call for this input and kind.
    ggml_tensor * once(ggml_tensor * input, Derived kind, const std::function<ggml_tensor *()> & make);
    // A node that our own kernels compute, on a device that has them. The graph is cut there. `call` queues the work.
    using Call = std::function<void(ggml_tensor * node, const DeviceKernels & kernels)>;
    ggml_tensor * kernel(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Call call);
    // Checks that the device supports every node. Throws Error("unsupported-operation").
    void check() const;
    // Checks, allocates, computes.
    void run(ggml_gallocr_t allocator);

   private:
    struct Custom {
        Work work;
        Compute & compute;
    };
    void compute();
    static void run_custom(ggml_tensor * node, int thread, int threads, void * data);
    Compute & compute_;
    std::deque<Custom> customs_;  // nodes point into it
    std::unordered_map<const ggml_tensor *, Call> calls_;
    std::map<std::pair<const ggml_tensor *, Derived>, ggml_tensor *> derived_;
    ContextPtr context_;
    ggml_cgraph * graph_;
};

}  // namespace cria
