#include "cria/job_thread.h"

namespace cria {

JobThread::JobThread() : thread_([this] { run(); }) {}

JobThread::~JobThread() { stop(); }

void JobThread::submit(std::function<void()> work, std::function<void()> dropped) {
    {
        const Locked lock(mutex_);
        if (!stopping_) {
            jobs_.push_back({std::move(work), std::move(dropped)});
            wake_.notify_one();
            return;
        }
    }
    dropped();
}

void JobThread::stop() {
    std::deque<Job> left;
    {
        const Locked lock(mutex_);
        stopping_ = true;
        left.swap(jobs_);
        wake_.notify_one();
    }
    for (auto & job : left) job.dropped();
    if (thread_.joinable()) thread_.join();
}

void JobThread::run() {
    for (;;) {
        Job job;
        {
            const Locked lock(mutex_);
            while (!stopping_ && jobs_.empty()) wake_.wait(mutex_);
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job.work();
    }
}

}  // namespace cria
