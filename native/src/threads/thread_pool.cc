#include "threads/thread_pool.h"

#include "cria/runtime.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace cria {

ThreadPool::ThreadPool(int threads) {
    const auto create = reinterpret_cast<decltype(ggml_threadpool_new) *>(find_cpu_function("ggml_threadpool_new"));
    if (threads < 2 || !create) return;
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    // No spinning between evaluations: the event loop and the sampler need the cores then.
    params.poll = 0;
    pool_ = create(&params);
}

ThreadPool::~ThreadPool() {
    if (!pool_) return;
    const auto free = reinterpret_cast<decltype(ggml_threadpool_free) *>(find_cpu_function("ggml_threadpool_free"));
    free(pool_);
}

void ThreadPool::attach(llama_context * context) const {
    if (pool_) llama_attach_threadpool(context, pool_, pool_);
}

void ThreadPool::attach(ggml_backend_t backend) const {
    const auto set = reinterpret_cast<decltype(ggml_backend_cpu_set_threadpool) *>(
        find_cpu_function("ggml_backend_cpu_set_threadpool"));
    if (pool_ && set) set(backend, pool_);
}

}  // namespace cria
