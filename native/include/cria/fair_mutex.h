// A mutex that serves in order of arrival: one thread that locks again and again cannot starve another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cria {

class FairMutex {
   public:
    void lock() {
        std::unique_lock<std::mutex> guard(mutex_);
        const uint64_t ticket = next_++;
        turn_.wait(guard, [&] { return serving_ == ticket; });
    }
    void unlock() {
        const std::lock_guard<std::mutex> guard(mutex_);
        serving_++;
        turn_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable turn_;
    uint64_t next_ = 0, serving_ = 0;
};

}  // namespace cria
