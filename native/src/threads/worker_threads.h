// Threads that share loops over independent items with the thread that calls them, and sleep in between.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "cria/mutex.h"

namespace cria {

class WorkerThreads {
   public:
    // Number of an item, and of the thread that works on it: below the number of threads, 0 is the caller's.
    using Work = std::function<void(int item, int thread)>;

    // `threads` includes the caller's. The others start with the first loop.
    explicit WorkerThreads(int threads) : count_(threads) {}
    ~WorkerThreads();
    WorkerThreads(const WorkerThreads &) = delete;
    WorkerThreads & operator=(const WorkerThreads &) = delete;

    int count() const { return count_; }
    // Works on the items 0 to count - 1, in no order; returns when all of them are done. Throws the first exception.
    void run(int count, const Work & work);

   private:
    void take_items(int thread);
    void wait_for_loops(int thread);

    const int count_;
    std::vector<std::thread> threads_;
    std::atomic<int> next_{0};
    Mutex mutex_;
    Condition started_, ended_;
    const Work * work_ CRIA_GUARDED_BY(mutex_) = nullptr;
    int items_ CRIA_GUARDED_BY(mutex_) = 0;
    int loop_ CRIA_GUARDED_BY(mutex_) = 0;  // counts loops, so that each thread takes part once
    int working_ CRIA_GUARDED_BY(mutex_) = 0;
    bool closed_ CRIA_GUARDED_BY(mutex_) = false;
    std::exception_ptr problem_ CRIA_GUARDED_BY(mutex_);
};

}  // namespace cria
