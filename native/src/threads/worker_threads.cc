#include "threads/worker_threads.h"

namespace cria {

WorkerThreads::~WorkerThreads() {
    {
        const Locked lock(mutex_);
        closed_ = true;
        started_.notify_all();
    }
    for (std::thread & thread : threads_) thread.join();
}

void WorkerThreads::run(int count, const Work & work) {
    for (int thread = int(threads_.size()) + 1; thread < count_; thread++)
        threads_.emplace_back([this, thread] { wait_for_loops(thread); });
    {
        const Locked lock(mutex_);
        work_ = &work;
        items_ = count;
        next_ = 0;
        loop_++;
        working_ = int(threads_.size());
        started_.notify_all();
    }
    take_items(0);
    std::exception_ptr problem;
    {
        const Locked lock(mutex_);
        while (working_ > 0) ended_.wait(mutex_);
        std::swap(problem, problem_);
    }
    if (problem) std::rethrow_exception(problem);
}

void WorkerThreads::take_items(int thread) {
    const Work * work = nullptr;
    int items = 0;
    {
        const Locked lock(mutex_);
        work = work_;
        items = items_;
    }
    try {
        for (int item = next_++; item < items; item = next_++) (*work)(item, thread);
    } catch (...) {
        const Locked lock(mutex_);
        if (!problem_) problem_ = std::current_exception();
    }
}

void WorkerThreads::wait_for_loops(int thread) {
    for (int done = 0;;) {
        {
            const Locked lock(mutex_);
            while (loop_ == done && !closed_) started_.wait(mutex_);
            if (closed_) return;
            done = loop_;
        }
        take_items(thread);
        const Locked lock(mutex_);
        if (--working_ == 0) ended_.notify_one();
    }
}

}  // namespace cria
