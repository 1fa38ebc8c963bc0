#include "binding/environment.h"

#include <cstdlib>
#include <mutex>

#include "binding/convert.h"
#include "cria/mutex.h"

namespace cria {

namespace {

// The only state that the process shares: the list of live environments. exit() on the main thread skips environment
// cleanup hooks and goes straight to the C library's exit handlers, and llama.cpp's libraries must not be torn down
// under running threads. Never freed: exit handlers may come in any order.
struct LiveEnvironments {
    Mutex mutex;
    std::unordered_set<Environment *> all CRIA_GUARDED_BY(mutex);

    static LiveEnvironments & get() {
        static auto * live = new LiveEnvironments();
        return *live;
    }
};

}  // namespace

Environment & Environment::install(Napi::Env env) {
    auto * environment = new Environment();
    environment->settler = Settler::create(env);
    env.SetInstanceData<Environment>(environment);
    {
        LiveEnvironments & live = LiveEnvironments::get();
        const Locked lock(live.mutex);
        live.all.insert(environment);
    }
    // For workers, and for a main thread that ends by itself. Runs before the settler's own teardown (hooks run last
    // in, first out), so threads end while they may still post.
    env.AddCleanupHook([environment] {
        environment->shut_down();
        LiveEnvironments & live = LiveEnvironments::get();
        const Locked lock(live.mutex);
        live.all.erase(environment);
    });
    shut_down_on_exit_event(env);
    return *environment;
}

void Environment::handle_process_exit() {
    static std::once_flag once;
    std::call_once(once, [] {
        std::atexit([] {
            LiveEnvironments & live = LiveEnvironments::get();
            const Locked lock(live.mutex);
            for (Environment * environment : live.all) environment->shut_down();
        });
    });
}

void Environment::shut_down_on_exit_event(Napi::Env env) {
    const Napi::Value process = env.Global().Get("process");
    if (!process.IsObject() || !process.As<Napi::Object>().Get("once").IsFunction()) return;
    const auto once = process.As<Napi::Object>().Get("once").As<Napi::Function>();
    once.Call(process, {Napi::String::New(env, "exit"), Napi::Function::New(env, [](const Napi::CallbackInfo & info) {
        Environment::of(info.Env()).shut_down();
    })});
}

void Environment::shut_down() {
    *closing = true;
    for (auto & spawned : spawned_) spawned.thread.join();
    spawned_.clear();
    for (const auto & projector : projectors) projector->close();
    projectors.clear();
    for (const auto & engine : engines) engine->close();
    engines.clear();
}

void Environment::spawn(std::function<void()> work) {
    for (auto it = spawned_.begin(); it != spawned_.end();) {
        if (it->finished->load()) {
            it->thread.join();
            it = spawned_.erase(it);
        } else {
            ++it;
        }
    }
    auto finished = std::make_shared<std::atomic<bool>>(false);
    spawned_.push_back({std::thread([work = std::move(work), finished] {
        work();
        *finished = true;
    }),
        finished});
}

Environment & Environment::of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

PendingPromise::PendingPromise(Napi::Env env, Environment & environment, Napi::Object keep_alive)
    : settler_(environment.settler), deferred_(std::make_shared<Napi::Promise::Deferred>(env)) {
    // A leaked reference at exit is harmless; deleting one on a foreign thread is not.
    keep_alive_ =
        std::shared_ptr<Napi::ObjectReference>(new Napi::ObjectReference(), [](Napi::ObjectReference * reference) {
        reference->SuppressDestruct();
        delete reference;
    });
    *keep_alive_ = Napi::Persistent(keep_alive);
    settler_->hold(env);
}

void PendingPromise::resolve(std::function<Napi::Value(Napi::Env)> make) const {
    settler_->post(
        [settler = settler_, deferred = deferred_, keep = keep_alive_, make = std::move(make)](Napi::Env env) {
        settler->release(env);
        keep->Reset();
        try {
            deferred->Resolve(make(env));
        } catch (const Napi::Error & error) {
            deferred->Reject(error.Value());
        }
    });
}

void PendingPromise::settle(
    const std::string & subject, const std::function<std::function<Napi::Value(Napi::Env)>()> & work) const {
    try {
        resolve(work());
    } catch (const Error & error) {
        reject(error);
    } catch (const std::exception & error) {
        reject(Error("internal", error.what()).subject(subject));
    }
}

void PendingPromise::reject(const Error & error) const {
    settler_->post([settler = settler_, deferred = deferred_, keep = keep_alive_, error](Napi::Env env) {
        settler->release(env);
        keep->Reset();
        deferred->Reject(to_js_error(env, error).Value());
    });
}

}  // namespace cria
