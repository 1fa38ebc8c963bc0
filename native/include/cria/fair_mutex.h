// A mutex that serves in order of arrival: one thread that locks again and again cannot starve another.
#pragma once

#include <cstdint>

#include "cria/mutex.h"

namespace cria {

class CRIA_CAPABILITY("mutex") FairMutex {
   public:
    void lock() CRIA_ACQUIRE() {
        const Locked lock(mutex_);
        const uint64_t ticket = next_++;
        while (serving_ != ticket) turn_.wait(mutex_);
    }
    void unlock() CRIA_RELEASE() {
        const Locked lock(mutex_);
        serving_++;
        turn_.notify_all();
    }
    // Whether another thread waits for it; for the thread that holds it.
    bool is_awaited() CRIA_REQUIRES(this) {
        const Locked lock(mutex_);
        return next_ > serving_ + 1;
    }

   private:
    Mutex mutex_;
    Condition turn_;
    uint64_t next_ CRIA_GUARDED_BY(mutex_) = 0, serving_ CRIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace cria
