// Mistakes with locks that clang's analysis must report: each line ends with its error. Compiled only by
// tests/compilers.test.ts, never linked.
#include <memory>

#include "cria/fair_mutex.h"

namespace cria {

struct Engineer {
    FairMutex & compute() CRIA_RETURN_CAPABILITY(compute_) { return compute_; }

   private:
    FairMutex compute_;
};

// Has the same layout as Scheduler::Impl.
struct Worker {
    std::shared_ptr<Engineer> engineer;
    Mutex mutex CRIA_ACQUIRED_AFTER(engineer->compute());
    Condition wake;
    ThreadRole role;
    int shared CRIA_GUARDED_BY(mutex) = 0;
    int own CRIA_GUARDED_BY(role) = 0;

    void take_step() CRIA_REQUIRES(role, engineer->compute(), mutex) {
        shared++;
        {
            const Unlocked unlocked(mutex);
            own++;
        }
        shared++;
    }
    void run() {
        const Locked as_worker(role);
        const Locked compute(engineer->compute());
        const Locked lock(mutex);
        while (shared == 0) wake.wait(mutex);
        take_step();
    }

    void read_without_lock() { shared++; }  // wrong: requires holding mutex 'mutex'
    void read_while_unlocked() CRIA_REQUIRES(mutex) {
        const Unlocked unlocked(mutex);
        shared++;  // wrong: requires holding mutex 'mutex'
    }
    void touch_from_another_thread() CRIA_REQUIRES(mutex) {
        own++;  // wrong: requires holding
    }
    void step_without_compute() CRIA_REQUIRES(role) {
        const Locked lock(mutex);
        take_step();  // wrong: 'engineer->compute_'
    }
    void lock_in_wrong_order() {
        const Locked lock(mutex);
        const Locked compute(engineer->compute());  // wrong: must be acquired before 'mutex'
    }
    void wait_without_lock() {
        wake.wait(mutex);  // wrong: requires holding mutex 'mutex'
    }
    void lock_twice() CRIA_REQUIRES(mutex) {
        const Locked lock(mutex);  // wrong: that is already held
    }                              // wrong: expecting mutex 'mutex' to be held
};

}  // namespace cria
