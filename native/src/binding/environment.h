// The parts of the addon that one JS environment (main thread or worker) owns: its settler, its engines and projectors.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>

#include <napi.h>

#include "binding/settler.h"
#include "cria/engine.h"
#include "cria/projector.h"

namespace cria {

struct Environment {
    std::shared_ptr<Settler> settler;
    std::unordered_set<std::shared_ptr<Engine>> engines;
    std::unordered_set<std::shared_ptr<Projector>> projectors;
    Napi::FunctionReference model_class, projector_class;
    // Tells long work (loading a model) that the environment is closing.
    std::shared_ptr<std::atomic<bool>> closing = std::make_shared<std::atomic<bool>>(false);

    // Runs `work` on a new thread, which is joined when the environment closes. JS thread only.
    void spawn(std::function<void()> work);

    // Registers the process's one exit handler, after the handlers of llama.cpp's libraries: handlers run last in,
    // first out. It shuts down environments that ended without an "exit" event. Environments with that event
    // (process.exit() and a natural end) are shut down by it, before any handler, because llama.cpp creates some
    // statics that its threads read only while it loads.
    static void handle_process_exit();
    // Ends all threads and frees all engines and projectors. Idempotent; on the environment's own thread.
    void shut_down();

    // Installs the instance data and a hook that ends all threads before the environment goes.
    static Environment & install(Napi::Env env);
    static Environment & of(Napi::Env env);

   private:
    static void shut_down_on_exit_event(Napi::Env env);

    struct Spawned {
        std::thread thread;
        std::shared_ptr<std::atomic<bool>> finished;
    };
    std::list<Spawned> spawned_;
};

// A promise that a native thread will settle. Created on the JS thread, settled once from any thread.
class PendingPromise {
   public:
    PendingPromise(Napi::Env env, Environment & environment, Napi::Object keep_alive);
    Napi::Promise promise() const { return deferred_->Promise(); }
    // `make` runs on the JS thread.
    void resolve(std::function<Napi::Value(Napi::Env)> make) const;
    void reject(const Error & error) const;
    // Runs `work` on this thread and resolves with what it returns, or rejects with what it throws.
    void settle(const std::string & subject, const std::function<std::function<Napi::Value(Napi::Env)>()> & work) const;

   private:
    std::shared_ptr<Settler> settler_;
    std::shared_ptr<Napi::Promise::Deferred> deferred_;
    std::shared_ptr<Napi::ObjectReference> keep_alive_;
};

// Resolves a promise with undefined.
inline std::function<Napi::Value(Napi::Env)> nothing() {
    return [](Napi::Env env) { return env.Undefined(); };
}

}  // namespace cria
