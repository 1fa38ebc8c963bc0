// Brings results from native threads to the JS thread of one environment (the main thread or a worker).
#pragma once

#include <functional>
#include <memory>

#include <napi.h>

namespace cria {

// Shared by all parts of one environment; callable from any thread until the environment closes.
class Settler : public std::enable_shared_from_this<Settler> {
   public:
    static std::shared_ptr<Settler> create(Napi::Env env);
    // Runs `work` on the JS thread; it is dropped when the environment is gone.
    void post(std::function<void(Napi::Env)> work);
    // JS thread only. The event loop stays alive while any promise is open.
    void hold(Napi::Env env);
    void release(Napi::Env env);
    void close();

   private:
    Settler() = default;
    napi_threadsafe_function function_ = nullptr;
    int open_ = 0;
};

}  // namespace cria
