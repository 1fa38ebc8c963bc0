// Threads that wait for the next evaluation of one llama_context or CPU backend. Without them ggml starts and ends
// threads for each evaluation, a large part of a small model's step. Not thread-safe; outlives what it is attached to.
#pragma once

#include "ggml-backend.h"

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
    void attach(ggml_backend_t backend) const;

   private:
    ggml_threadpool * pool_ = nullptr;
};

}  // namespace cria
