// A worker thread that runs jobs in order: training, scoring, saving. One per model, so that the event loop never
// waits.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "cria/mutex.h"

namespace cria {

class JobThread {
   public:
    JobThread();
    ~JobThread();
    JobThread(const JobThread &) = delete;
    JobThread & operator=(const JobThread &) = delete;

    // `dropped` is called instead of `work` when the thread stops first. Any thread.
    void submit(std::function<void()> work, std::function<void()> dropped) CRIA_EXCLUDES(mutex_);
    // Finishes the job that runs, drops those that wait, joins. Idempotent.
    void stop() CRIA_EXCLUDES(mutex_);

   private:
    struct Job {
        std::function<void()> work, dropped;
    };

    void run() CRIA_EXCLUDES(mutex_);

    Mutex mutex_;
    Condition wake_;
    std::deque<Job> jobs_ CRIA_GUARDED_BY(mutex_);
    bool stopping_ CRIA_GUARDED_BY(mutex_) = false;
    std::thread thread_;  // last: starts when the rest exists
};

}  // namespace cria
