#include "binding/settler.h"

namespace cria {

namespace {

using Work = std::function<void(Napi::Env)>;

// A null env means that the environment is closing: the work can only be dropped.
void call_js(napi_env env, napi_value, void *, void * data) {
    const std::unique_ptr<Work> work(static_cast<Work *>(data));
    if (!env) return;
    Napi::HandleScope scope(env);
    try {
        (*work)(Napi::Env(env));
    } catch (const Napi::Error & error) {
        // The user's callback threw: report it to the process as an uncaught exception.
        napi_fatal_exception(env, error.Value());
    }
}

}  // namespace

std::shared_ptr<Settler> Settler::create(Napi::Env env) {
    std::shared_ptr<Settler> settler(new Settler());
    const Napi::String name = Napi::String::New(env, "cria");
    if (napi_create_threadsafe_function(
            env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, nullptr, call_js, &settler->function_) != napi_ok) {
        throw Napi::Error::New(env, "cria: cannot create a thread-safe function");
    }
    napi_unref_threadsafe_function(env, settler->function_);
    return settler;
}

void Settler::post(std::function<void(Napi::Env)> work) {
    auto * data = new Work(std::move(work));
    if (napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking) != napi_ok) delete data;
}

void Settler::hold(Napi::Env env) {
    if (open_++ == 0) napi_ref_threadsafe_function(env, function_);
}

void Settler::release(Napi::Env env) {
    if (--open_ == 0) napi_unref_threadsafe_function(env, function_);
}

void Settler::close() { napi_release_threadsafe_function(function_, napi_tsfn_abort); }

}  // namespace cria
