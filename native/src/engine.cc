#include "cria/engine.h"

#include "cria/error.h"
#include "cria/scheduler_defaults.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cria {

namespace {

// glibc keeps freed memory in an arena of each thread that allocated; a process that loads models repeatedly would grow
// by these fragments.
void return_freed_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace

Engine::Engine(const EngineOptions & options) : model_(Model::load(options.model)) {
    // Order matters on failure: each part needs those before it.
    if (options.model.trainable != Trainable::none) make_trainer(options);
    scheduler_options_ = fill_defaults(*model_, options.scheduler);
    scheduler_ = std::make_unique<Scheduler>(model_, scheduler_options_);
}

Engine::~Engine() { close(); }

void Engine::make_trainer(const EngineOptions & options) {
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
        model_->notice =
            "trains and generates on the CPU: " + error.subject() + ": " + error.what() + ": " + error.received();
        trainer_ = std::make_unique<Trainer>(model_, options.trainer);
    }
}

Model & Engine::model() const {
    check_alive();
    return *model_;
}

std::shared_ptr<Model> Engine::share_model() const {
    check_alive();
    return model_;
}

Scheduler & Engine::scheduler() const {
    check_alive();
    return *scheduler_;
}

Trainer & Engine::trainer() const {
    check_alive();
    if (!trainer_) {
        throw Error("not-trainable", "the model was loaded for generation only")
            .subject(model_->options().path)
            .expected("trainable \"lora\" or \"full\"")
            .received("trainable \"none\"")
            .remedy("load it with trainable \"lora\" and lora: {rank, alpha}");
    }
    return *trainer_;
}

void Engine::abort_training() {
    if (trainer_) trainer_->request_abort();
}

void Engine::close() {
    refuse_calls();
    const Locked lock(close_mutex_);
    if (closed_) return;
    closed_ = true;
    abort_training();
    jobs_.stop();
    scheduler_.reset();
    trainer_.reset();
    model_.reset();
    return_freed_memory();
}

void Engine::check_alive() const {
    if (refusing_) throw Error("disposed", "was disposed").subject("model").remedy("load it again");
}

}  // namespace cria
