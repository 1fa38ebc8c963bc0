// Threads that wait for the next evaluation of one llama_context. Without them ggml starts and ends threads at each
// one, which costs a small model a good part of its step. Not thread-safe; outlives the context that it is attached to.
#pragma once

struct ggml_threadpool;
struct llama_context;

namespace cria {

class ThreadPool {
   public:
    // `threads` counts the caller's too: one thread needs no pool, nor does a CPU backend that brings its own.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool & operator=(const ThreadPool &) = delete;

    void attach(llama_context * context) const;

   private:
    ggml_threadpool * pool_ = nullptr;
};

}  // namespace cria
