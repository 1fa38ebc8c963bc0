#include "train/compute.h"

#include <algorithm>

#include "cria/error.h"
#include "cria/runtime.h"

namespace cria {

namespace {

bool read_abort_flag(void * data) { return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_relaxed); }

BackendPtr make_cpu_backend(int threads, std::atomic<bool> * abort) {
    BackendPtr backend(ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), nullptr));
    if (!backend) throw Error("no-backend", "the CPU backend cannot be started").subject("llama.cpp");
    using SetThreads = void (*)(ggml_backend_t, int);
    using SetAbort = void (*)(ggml_backend_t, ggml_abort_callback, void *);
    if (auto set = reinterpret_cast<SetThreads>(find_cpu_function("ggml_backend_set_n_threads"))) set(backend.get(), threads);
    if (auto set = reinterpret_cast<SetAbort>(find_cpu_function("ggml_backend_set_abort_callback"))) set(backend.get(), read_abort_flag, abort);
    return backend;
}

}  // namespace

Compute::Compute(bool on_cpu, int threads) : on_cpu_(on_cpu), threads_(threads), workspaces_(size_t(threads)) {
    if (on_cpu) {
        backend_ = make_cpu_backend(threads, &abort_);
    } else {
        backend_.reset(ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU), nullptr));
        if (!backend_) throw Error("no-device", "the GPU cannot be started for training").subject("device");
        cpu_backend_ = make_cpu_backend(threads, &abort_);
    }
}

AllocatorPtr Compute::make_allocator() const {
    return AllocatorPtr(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend_.get())));
}

void Compute::run(ggml_cgraph * graph) { run_on(backend_.get(), graph); }

void Compute::run_on(ggml_backend_t backend, ggml_cgraph * graph) {
    const ggml_status status = abort_.load() ? GGML_STATUS_ABORTED : ggml_backend_graph_compute(backend, graph);
    if (status == GGML_STATUS_ABORTED) throw Error("aborted", "was aborted").subject("training");
    if (status != GGML_STATUS_SUCCESS) {
        throw Error("compute-failed", "a graph could not be computed").subject("training").received(ggml_status_to_string(status));
    }
}

void Compute::parallel(int64_t count, const std::function<void(int64_t, int64_t)> & work) {
    // One custom node on the CPU backend borrows the threads that ggml keeps anyway.
    Graph graph(*this, 4);
    ggml_tensor * node = graph.custom({1}, {}, [&](ggml_tensor *, int thread, int threads, Compute &) {
        const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
        if (end > begin) work(begin, end);
    });
    float result = 0;
    node->data = &result;
    graph.expand(node);
    run_on(on_cpu_ ? backend_.get() : cpu_backend_.get(), graph.graph());
}

TensorPool::TensorPool(size_t max_tensors) : context_(ggml_init({(max_tensors + 1) * ggml_tensor_overhead(), nullptr, true})) {}

ggml_tensor * TensorPool::add(ggml_type type, std::vector<int64_t> shape) {
    return ggml_new_tensor(context_.get(), type, int(shape.size()), shape.data());
}

void TensorPool::allocate(const Compute & compute, const char * purpose) {
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), compute.backend()));
    if (buffer_) return;
    size_t bytes = 0;
    for (ggml_tensor * t = ggml_get_first_tensor(context_.get()); t; t = ggml_get_next_tensor(context_.get(), t)) bytes += ggml_nbytes(t);
    throw Error("out-of-memory", std::string("no memory for ") + purpose).subject("training").expected(std::to_string(bytes >> 20) + " MiB free")
        .remedy("use shorter sequences, smaller micro-batches or a smaller model");
}

Graph::Graph(Compute & compute, size_t max_nodes)
    : compute_(compute), context_(ggml_init({2 * max_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_nodes, false), nullptr, true})),
      graph_(ggml_new_graph_custom(context_.get(), max_nodes, false)) {}

ggml_tensor * Graph::ref(ggml_tensor * tensor) {
    ggml_tensor * leaf = ggml_new_tensor(ctx(), tensor->type, GGML_MAX_DIMS, tensor->ne);
    for (int i = 0; i < GGML_MAX_DIMS; i++) leaf->nb[i] = tensor->nb[i];
    leaf->data = tensor->data;
    leaf->buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return leaf;
}

void Graph::write(ggml_tensor * value, ggml_tensor * target) { expand(ggml_cpy(ctx(), value, ref(target))); }

void Graph::accumulate(ggml_tensor * value, ggml_tensor * target) { expand(ggml_add_inplace(ctx(), ref(target), value)); }

void Graph::run_custom(ggml_tensor * node, int thread, int threads, void * data) {
    const Custom & custom = *static_cast<Custom *>(data);
    custom.work(node, thread, threads, custom.compute);
}

ggml_tensor * Graph::custom(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Work work) {
    shape.resize(GGML_MAX_DIMS, 1);
    customs_.push_back({std::move(work), compute_});
    return ggml_custom_4d(ctx(), GGML_TYPE_F32, shape[0], shape[1], shape[2], shape[3], inputs.data(), int(inputs.size()), run_custom,
                          GGML_N_TASKS_MAX, &customs_.back());
}

ggml_tensor * Graph::custom_inplace(ggml_tensor * target, std::vector<ggml_tensor *> inputs, Work work) {
    customs_.push_back({std::move(work), compute_});
    return ggml_custom_inplace(ctx(), target, inputs.data(), int(inputs.size()), run_custom, GGML_N_TASKS_MAX, &customs_.back());
}

void Graph::run(ggml_gallocr_t allocator) {
    for (int i = 0; i < ggml_graph_n_nodes(graph_); i++) {
        const ggml_tensor * node = ggml_graph_node(graph_, i);
        if (!ggml_backend_supports_op(compute_.backend(), node)) {
            throw Error("unsupported-operation", "the device cannot run an operation of the training graph")
                .subject(ggml_backend_name(compute_.backend()))
                .received(std::string(ggml_op_desc(node)) + (node->src[0] ? std::string(" of ") + ggml_type_name(node->src[0]->type) : ""))
                .remedy("train on the CPU (device \"cpu\"), or use another weight type");
        }
    }
    if (!ggml_gallocr_alloc_graph(allocator, graph_)) {
        throw Error("out-of-memory", "no memory for the activations of one layer").subject("training")
            .remedy("use shorter sequences or smaller micro-batches");
    }
    compute_.run(graph_);
}

}  // namespace cria
