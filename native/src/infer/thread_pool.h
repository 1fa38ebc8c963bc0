// Threads that wait for the next evaluation of one llama_context. Without them ggml starts and ends threads for each
// evaluation, a large part of a small model's step. Not thread-safe; outlives the context that it is attached to.
#pragma once

struct ggml_threadpool;
struct llama_context;

namespace cria {

class ThreadPool {
   public:
    // `threads` includes the caller's: one thread needs no pool, nor does a CPU backend that has its own.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool & operator=(const ThreadPool &) = delete;

    void attach(llama_context * context) const;

   private:
    ggml_threadpool * pool_ = nullptr;
};

}  // namespace cria
