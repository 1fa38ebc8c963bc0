// std::mutex and related types with the annotations for clang's thread-safety analysis, which libstdc++ lacks.
#pragma once

#include <condition_variable>
#include <mutex>

#include "cria/thread_safety.h"

namespace cria {

class CRIA_CAPABILITY("mutex") Mutex {
   public:
    void lock() CRIA_ACQUIRE() { mutex_.lock(); }
    void unlock() CRIA_RELEASE() { mutex_.unlock(); }

   private:
    friend class Condition;
    std::mutex mutex_;
};

// Holds a lock while it lives: a Mutex, or another type with lock() and unlock().
template <typename Lock>
class CRIA_SCOPED_CAPABILITY Locked {
   public:
    explicit Locked(Lock & lock) CRIA_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
    ~Locked() CRIA_RELEASE() { lock_.unlock(); }
    Locked(const Locked &) = delete;
    Locked & operator=(const Locked &) = delete;

   private:
    Lock & lock_;
};

// Releases a lock while it lives and takes it again at the end, also when an exception leaves the scope.
class CRIA_SCOPED_CAPABILITY Unlocked {
   public:
    explicit Unlocked(Mutex & mutex) CRIA_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Unlocked() CRIA_RELEASE() { mutex_.lock(); }  // means this object: the mutex is locked again
    Unlocked(const Unlocked &) = delete;
    Unlocked & operator=(const Unlocked &) = delete;

   private:
    Mutex & mutex_;
};

class Condition {
   public:
    // May wake up without a signal: callers check their condition again.
    void wait(Mutex & mutex) CRIA_REQUIRES(mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        condition_.wait(lock);
        lock.release();
    }
    void notify_one() { condition_.notify_one(); }
    void notify_all() { condition_.notify_all(); }

   private:
    std::condition_variable condition_;
};

// Guards data that only one thread touches, without a lock. The thread holds the role from its beginning to its end.
class CRIA_CAPABILITY("role") ThreadRole {
   public:
    void lock() CRIA_ACQUIRE() {}
    void unlock() CRIA_RELEASE() {}
};

}  // namespace cria
