// One loaded model with everything that runs on it: scheduler thread, trainer, job thread. Plain C++, no N-API.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "cria/error.h"
#include "cria/model.h"
#include "cria/scheduler.h"
#include "cria/trainer.h"
#include "infer/scheduler_defaults.h"
#include "job_thread.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cria {

struct EngineOptions {
    ModelOptions model;
    SchedulerOptions scheduler;
    TrainerOptions trainer;
};

class Engine {
   public:
    explicit Engine(const EngineOptions & options) : model_(Model::load(options.model)) {
        // Order matters on failure: each part needs those before it.
        if (options.model.trainable != Trainable::none) make_trainer(options);
        scheduler_options_ = fill_defaults(*model_, options.scheduler);
        scheduler_ = std::make_unique<Scheduler>(model_, scheduler_options_);
    }
    ~Engine() { close(); }

    // Throws Error("disposed") after close().
    Model & model() const { return alive(), *model_; }
    Scheduler & scheduler() const { return alive(), *scheduler_; }
    Trainer & trainer() const {
        alive();
        if (!trainer_) {
            throw Error("not-trainable", "the model was loaded for generation only").subject(model_->options().path)
                .expected("trainable \"lora\" or \"full\"").received("trainable \"none\"").remedy("load it with trainable \"lora\" and lora: {rank, alpha}");
        }
        return *trainer_;
    }
    const SchedulerOptions & scheduler_options() const { return scheduler_options_; }
    JobThread & jobs() { return jobs_; }
    void abort_training() {
        if (trainer_) trainer_->request_abort();
    }

    // From now on accessors throw. Before close() on another thread: whoever calls them must not meet parts being freed.
    void refuse_calls() { refusing_ = true; }
    // Ends everything in flight as aborted and frees the memory. Any thread but the job thread; idempotent.
    void close() {
        refuse_calls();
        const std::lock_guard<std::mutex> lock(close_mutex_);
        if (closed_) return;
        closed_ = true;
        abort_training();
        jobs_.stop();
        scheduler_.reset();
        trainer_.reset();
        model_.reset();
        return_freed_memory();
    }
    bool closed() const { return refusing_; }

   private:
    void make_trainer(const EngineOptions & options) {
        try {
            trainer_ = std::make_unique<Trainer>(model_, options.trainer);
        } catch (const Error & error) {
            const bool lacks_something = error.code() == "unsupported-operation" || error.code() == "weights-elsewhere";
            const bool elsewhere = !model_->on_cpu() || options.model.emulated_device;
            if (options.model.device != "auto" || !elsewhere || !lacks_something) throw;
            ModelOptions on_cpu = options.model;
            on_cpu.device = "cpu";
            on_cpu.emulated_device.reset();
            model_ = Model::load(on_cpu);
            model_->notice = "trains and generates on the CPU: " + error.subject() + ": " + error.what() + ": " + error.received();
            trainer_ = std::make_unique<Trainer>(model_, options.trainer);
        }
    }

    // glibc keeps what was freed in an arena of each thread that allocated; a process that loads models again and again would
    // grow by their fragments.
    static void return_freed_memory() {
#ifdef __GLIBC__
        malloc_trim(0);
#endif
    }

    void alive() const {
        if (refusing_) throw Error("disposed", "was disposed").subject("model").remedy("load it again");
    }

    std::shared_ptr<Model> model_;
    std::unique_ptr<Trainer> trainer_;
    std::unique_ptr<Scheduler> scheduler_;
    SchedulerOptions scheduler_options_;
    std::atomic<bool> refusing_{false};
    std::mutex close_mutex_;
    bool closed_ = false;
    JobThread jobs_;
};

}  // namespace cria
