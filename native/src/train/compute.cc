#include "train/compute.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cria/backends.h"
#include "cria/error.h"
#include "cria/runtime.h"
#include "ggml-impl.h"
#include "system/shared_library.h"

namespace cria {

namespace {

// Graphs that take less, in seconds, leave a core to the event loop while sequences are sampled beside them.
constexpr double kSmallGraph = 5e-3;

bool read_abort_flag(void * data) { return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_relaxed); }

void set_threads(ggml_backend_t backend, int threads) {
    using SetThreads = void (*)(ggml_backend_t, int);
    static const auto set = reinterpret_cast<SetThreads>(find_cpu_function("ggml_backend_set_n_threads"));
    if (set) set(backend, threads);
}

BackendPtr make_cpu_backend(const ThreadPool & pool, std::atomic<bool> * abort) {
    BackendPtr backend(ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), nullptr));
    if (!backend) throw Error("no-backend", "the CPU backend cannot be started").subject("llama.cpp");
    pool.attach(backend.get());
    using SetAbort = void (*)(ggml_backend_t, ggml_abort_callback, void *);
    if (auto set = reinterpret_cast<SetAbort>(find_cpu_function("ggml_backend_set_abort_callback")))
        set(backend.get(), read_abort_flag, abort);
    return backend;
}

// ggml names its CUDA devices CUDA0, CUDA1, ... in the driver's order.
int device_number(ggml_backend_dev_t device) {
    const std::string name = ggml_backend_dev_name(device);
    const size_t digits = name.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : std::stoi(name.substr(digits));
}

using HasOperation = bool (*)(const ggml_tensor *);

HasOperation load_operations(const std::string & path) {
    std::string problem;
    void * library = load_library(path, problem);
    const auto found =
        library ? reinterpret_cast<HasOperation>(find_function(library, "cria_device_supports")) : nullptr;
    if (found) return found;
    throw Error("bad-option", "tells no operations")
        .subject("loadModel.emulatedDevice.operations")
        .expected("a library with cria_device_supports")
        .received(problem.empty() ? path : problem);
}

std::string describe_shape(const ggml_tensor * t) {
    std::string text = std::string(ggml_type_name(t->type)) + " [";
    for (int i = 0; i < ggml_n_dims(t); i++) text += (i ? ", " : "") + std::to_string(t->ne[i]);
    return text + (ggml_is_contiguous(t) ? "]" : "] (not contiguous)");
}

}  // namespace

Compute::Compute(const Model & model)
    : on_cpu_(model.on_cpu() && !model.options().emulated_device), threads_(model.threads()), pool_(threads_),
      choice_(threads_), workspaces_(size_t(threads_)) {
    std::string library, problem;
    if (const auto & emulated = model.options().emulated_device) {
        refused_ = emulated->refused;
        library = emulated->kernels;
        if (!emulated->operations.empty()) has_operation_ = load_operations(emulated->operations);
    } else if (model.device_kind() == "cuda") {
        library = find_kernels_library();
    }
    if (!library.empty()) kernels_ = DeviceKernels::load(library, device_number(model.device()), problem);
    if (!problem.empty()) notice = "trains by ggml's operations, without our kernels: " + problem;
    if (model.on_cpu()) {
        backend_ = make_cpu_backend(pool_, &abort_);
        return;
    }
    backend_.reset(ggml_backend_dev_init(model.device(), nullptr));
    if (!backend_) throw Error("no-device", "the GPU cannot be started for training").subject("device");
    cpu_backend_ = make_cpu_backend(pool_, &abort_);
    needs_own_sets_ = std::string(ggml_backend_dev_description(model.device())).rfind("llvmpipe", 0) == 0;
}

bool Compute::supports(const ggml_tensor * node) const {
    const bool refused = std::find(refused_.begin(), refused_.end(), ggml_op_desc(node)) != refused_.end() ||
                         (has_operation_ && !has_operation_(node));
    return !refused && ggml_backend_supports_op(backend_.get(), node);
}

AllocatorPtr Compute::make_allocator() const {
    return AllocatorPtr(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend_.get())));
}

// Graphs with as many nodes, and about as many values in them, are of a kind.
void Compute::run(ggml_cgraph * graph) {
    double values = 0;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) values += double(ggml_nelements(ggml_graph_node(graph, i)));
    run_on(backend_.get(), graph, (uint64_t(ggml_graph_n_nodes(graph)) << 8) + uint64_t(std::ilogb(values)));
}

void Compute::run_on(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind) {
    if (!turns_) return run_now(backend, graph, kind, threads_);
    const Locked lock(*turns_);
    // As in Evaluator: what is sampled meanwhile keeps the event loop busy.
    const double expected = choice_.expect(kind);
    const bool shares = turns_->is_awaited() && expected > 0 && expected < kSmallGraph;
    run_now(backend, graph, kind, shares ? std::max(1, threads_ - 1) : threads_);
}

void Compute::run_now(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind, int threads) {
    // CUDA records a graph that comes twice, by the address of its first node, and replays it. Ours are freed and built
    // again at the same addresses; a name of its own keeps each from being taken for an older one.
    if (backend != cpu_backend_.get() && cpu_backend_) ggml_format_name(ggml_graph_node(graph, 0), "%d", ++runs_);
    const ggml_status status = abort_.load() ? GGML_STATUS_ABORTED : compute(backend, graph, kind, threads);
    if (status == GGML_STATUS_ABORTED) throw Error("aborted", "was aborted").subject("training");
    if (status != GGML_STATUS_SUCCESS) {
        throw Error("compute-failed", "a graph could not be computed")
            .subject("training")
            .received(ggml_status_to_string(status));
    }
}

ggml_status Compute::compute(ggml_backend_t backend, ggml_cgraph * graph, uint64_t kind, int threads) {
    const bool is_device = cpu_backend_ && backend != cpu_backend_.get();
    if (is_device && needs_own_sets_) {
        const BackendPtr own(ggml_backend_dev_init(ggml_backend_get_device(backend), nullptr));
        return own ? ggml_backend_graph_compute(own.get(), graph) : GGML_STATUS_ALLOC_FAILED;
    }
    if (is_device) return ggml_backend_graph_compute(backend, graph);
    set_threads(backend, choice_.choose(kind, threads));
    using Clock = std::chrono::steady_clock;
    const auto started = Clock::now();
    const ggml_status status = ggml_backend_graph_compute(backend, graph);
    if (status == GGML_STATUS_SUCCESS) choice_.note(std::chrono::duration<double>(Clock::now() - started).count());
    return status;
}

void Compute::parallel(int64_t count, const std::function<void(int64_t, int64_t)> & work) {
    // One custom node on the CPU backend uses the threads that ggml keeps anyway.
    Graph graph(*this, 4);
    ggml_tensor * node = graph.custom({1}, {}, [&](ggml_tensor *, int thread, int threads, Compute &) {
        const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
        if (end > begin) work(begin, end);
    });
    float result = 0;
    node->data = &result;
    graph.expand(node);
    // The caller's function tells what the work is, and the count how much.
    const uint64_t kind = work.target_type().hash_code() ^ uint64_t(std::ilogb(double(std::max<int64_t>(count, 1))));
    run_on(cpu_backend_ ? cpu_backend_.get() : backend_.get(), graph.graph(), kind);
}

TensorPool::TensorPool(size_t max_tensors)
    : context_(ggml_init({(max_tensors + 1) * ggml_tensor_overhead(), nullptr, true})) {}

ggml_tensor * TensorPool::add(ggml_type type, std::vector<int64_t> shape) {
    return ggml_new_tensor(context_.get(), type, int(shape.size()), shape.data());
}

void TensorPool::allocate(const Compute & compute, const char * purpose) {
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), compute.backend()));
    if (buffer_) return;
    size_t bytes = 0;
    for (ggml_tensor * t = ggml_get_first_tensor(context_.get()); t; t = ggml_get_next_tensor(context_.get(), t))
        bytes += ggml_nbytes(t);
    throw Error("out-of-memory", std::string("no memory for ") + purpose)
        .subject("training")
        .expected(std::to_string(bytes >> 20) + " MiB free")
        .remedy("use shorter sequences, smaller micro-batches or a smaller model");
}

Graph::Graph(Compute & compute, size_t max_nodes)
    : compute_(compute),
      context_(ggml_init(
          {2 * max_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_nodes, false), nullptr, true})),
      graph_(ggml_new_graph_custom(context_.get(), max_nodes, false)) {}

ggml_tensor * Graph::ref(ggml_tensor * tensor) {
    ggml_tensor * leaf = ggml_new_tensor(ctx(), tensor->type, GGML_MAX_DIMS, tensor->ne);
    for (int i = 0; i < GGML_MAX_DIMS; i++) leaf->nb[i] = tensor->nb[i];
    leaf->data = tensor->data;
    leaf->buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return leaf;
}

void Graph::write(ggml_tensor * value, ggml_tensor * target) { expand(ggml_cpy(ctx(), value, ref(target))); }

void Graph::accumulate(ggml_tensor * value, ggml_tensor * target) {
    expand(ggml_add_inplace(ctx(), ref(target), value));
}

void Graph::run_custom(ggml_tensor * node, int thread, int threads, void * data) {
    const Custom & custom = *static_cast<Custom *>(data);
    custom.work(node, thread, threads, custom.compute);
}

ggml_tensor * Graph::custom(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Work work) {
    shape.resize(GGML_MAX_DIMS, 1);
    customs_.push_back({std::move(work), compute_});
    return ggml_custom_4d(ctx(), GGML_TYPE_F32, shape[0], shape[1], shape[2], shape[3], inputs.data(),
        int(inputs.size()), run_custom, GGML_N_TASKS_MAX, &customs_.back());
}

ggml_tensor * Graph::custom_inplace(ggml_tensor * target, std::vector<ggml_tensor *> inputs, Work work) {
    customs_.push_back({std::move(work), compute_});
    return ggml_custom_inplace(
        ctx(), target, inputs.data(), int(inputs.size()), run_custom, GGML_N_TASKS_MAX, &customs_.back());
}

ggml_tensor * Graph::once(ggml_tensor * input, Derived kind, const std::function<ggml_tensor *()> & make) {
    ggml_tensor *& node = derived_[{input, kind}];
    if (!node) node = make();
    return node;
}

ggml_tensor * Graph::kernel(std::vector<int64_t> shape, std::vector<ggml_tensor *> inputs, Call call) {
    // The custom node gives the allocator its memory and its lifetime; it never reaches ggml's backend.
    ggml_tensor * node = custom(std::move(shape), std::move(inputs), nullptr);
    calls_[node] = std::move(call);
    return node;
}

void Graph::check() const {
    for (int i = 0; i < ggml_graph_n_nodes(graph_); i++) {
        const ggml_tensor * node = ggml_graph_node(graph_, i);
        if (calls_.count(node) || compute_.supports(node)) continue;
        std::string operation = std::string(ggml_op_desc(node)) + " -> " + describe_shape(node);
        for (int s = 0; s < GGML_MAX_SRC && node->src[s]; s++)
            operation += (s ? ", " : " of ") + describe_shape(node->src[s]);
        throw Error("unsupported-operation", "the device cannot run an operation of the training graph")
            .subject(ggml_backend_name(compute_.backend()))
            .received(operation)
            .remedy("train on the CPU (device \"cpu\"), or use another weight type");
    }
}

void Graph::compute() {
    if (calls_.empty()) return compute_.run(graph_);
    // ggml computes the nodes between our kernels; each side waits for the other.
    const int count = ggml_graph_n_nodes(graph_);
    const DeviceKernels & kernels = *compute_.kernels();
    kernels.enter();
    for (int begin = 0; begin < count;) {
        int end = begin;
        while (end < count && !calls_.count(ggml_graph_node(graph_, end))) end++;
        if (end > begin) {
            ggml_cgraph part = ggml_graph_view(graph_, begin, end);
            compute_.run(&part);
        }
        for (begin = end; begin < count; begin++) {
            const auto call = calls_.find(ggml_graph_node(graph_, begin));
            if (call == calls_.end()) break;
            call->second(ggml_graph_node(graph_, begin), kernels);
        }
        if (begin > end) kernels.wait();
    }
}

void Graph::run(ggml_gallocr_t allocator) {
    check();
    if (compute_.only_ask) return;
    if (!ggml_gallocr_alloc_graph(allocator, graph_)) {
        throw Error("out-of-memory", "no memory for the activations of one layer")
            .subject("training")
            .remedy("use shorter sequences or smaller micro-batches");
    }
    compute();
}

}  // namespace cria
