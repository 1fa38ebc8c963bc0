// One loaded model with everything that runs on it: scheduler thread, trainer, job thread. Plain C++, no N-API.
#pragma once

#include <atomic>
#include <memory>

#include "cria/job_thread.h"
#include "cria/model.h"
#include "cria/mutex.h"
#include "cria/scheduler.h"
#include "cria/trainer.h"

namespace cria {

struct EngineOptions {
    ModelOptions model;
    SchedulerOptions scheduler;
    TrainerOptions trainer;
};

class Engine {
   public:
    // Throws what Model::load, Trainer and Scheduler throw.
    explicit Engine(const EngineOptions & options);
    ~Engine();

    // These throw Error("disposed") after close(). trainer() also throws Error("not-trainable") for a model that only
    // generates.
    Model & model() const;
    std::shared_ptr<Model> share_model() const;
    Scheduler & scheduler() const;
    Trainer & trainer() const;
    // The options, with their defaults filled in.
    const SchedulerOptions & scheduler_options() const { return scheduler_options_; }
    JobThread & jobs() { return jobs_; }
    void abort_training();

    // From now on accessors throw. Call it before close() on another thread, so that no caller gets a part that is
    // being freed.
    void refuse_calls() { refusing_ = true; }
    // Ends everything in flight as aborted and frees the memory. Any thread but the job thread; idempotent.
    void close() CRIA_EXCLUDES(close_mutex_);
    bool closed() const { return refusing_; }

   private:
    void make_trainer(const EngineOptions & options);
    void check_alive() const;

    std::shared_ptr<Model> model_;
    std::unique_ptr<Trainer> trainer_;
    std::unique_ptr<Scheduler> scheduler_;
    SchedulerOptions scheduler_options_;
    std::atomic<bool> refusing_{false};
    Mutex close_mutex_;
    bool closed_ CRIA_GUARDED_BY(close_mutex_) = false;
    JobThread jobs_;
};

}  // namespace cria
