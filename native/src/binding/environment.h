// What one JS environment (main thread or worker) owns in the addon: its settler and its engines.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <unordered_set>

#include <napi.h>

#include "binding/settler.h"
#include "engine.h"

namespace cria {

struct Environment {
    std::shared_ptr<Settler> settler;
    std::unordered_set<std::shared_ptr<Engine>> engines;
    Napi::FunctionReference model_class;
    // Tells long work (loading a model) that the environment is going away.
    std::shared_ptr<std::atomic<bool>> closing = std::make_shared<std::atomic<bool>>(false);

    // Runs `work` on a thread of its own, joined when the environment closes. JS thread only.
    void spawn(std::function<void()> work);

    // Shuts every environment down at exit(). Called before and after each model is loaded: handlers run last in, first
    // out, and llama.cpp makes some of its statics (which its threads read) only while it loads.
    static void handle_process_exit();
    // Ends all threads and frees all engines. Idempotent; on the environment's own thread.
    void shut_down();

    // Installs the instance data and a hook that ends all threads before the environment goes.
    static Environment & install(Napi::Env env);
    static Environment & of(Napi::Env env);

   private:
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

   private:
    std::shared_ptr<Settler> settler_;
    std::shared_ptr<Napi::Promise::Deferred> deferred_;
    std::shared_ptr<Napi::ObjectReference> keep_alive_;
};

}  // namespace cria
