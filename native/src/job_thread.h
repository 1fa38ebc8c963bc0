// A worker thread that runs jobs in order: training, scoring, saving. One per model, so that the event loop never waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cria {

class JobThread {
   public:
    JobThread() : thread_([this] { run(); }) {}
    // Finishes the job that runs, drops those that wait (their `dropped` is called), joins.
    ~JobThread() { stop(); }
    JobThread(const JobThread &) = delete;
    JobThread & operator=(const JobThread &) = delete;

    void submit(std::function<void()> work, std::function<void()> dropped) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!stopping_) {
                jobs_.push_back({std::move(work), std::move(dropped)});
                wake_.notify_one();
                return;
            }
        }
        dropped();
    }

    void stop() {
        std::deque<Job> left;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            left.swap(jobs_);
            wake_.notify_one();
        }
        for (auto & job : left) job.dropped();
        if (thread_.joinable()) thread_.join();
    }

   private:
    struct Job {
        std::function<void()> work, dropped;
    };

    void run() {
        for (;;) {
            Job job;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
                if (jobs_.empty()) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            job.work();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    std::thread thread_;  // last: starts when the rest exists
};

}  // namespace cria
