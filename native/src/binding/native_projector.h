// The JS class NativeProjector: thin, typed access to one Projector. Its contract is
// packages/engine/src/native-types.ts.
#pragma once

#include <memory>

#include <napi.h>

#include "binding/environment.h"

namespace cria {

ProjectorOptions read_projector_options(const Napi::Value & value);

class NativeProjector : public Napi::ObjectWrap<NativeProjector> {
   public:
    static Napi::Function define(Napi::Env env);
    static Napi::Object wrap(Napi::Env env, std::shared_ptr<Projector> projector);
    explicit NativeProjector(const Napi::CallbackInfo & info);

   private:
    using Info = const Napi::CallbackInfo &;
    Napi::Value info(Info);
    Napi::Value layout(Info);
    Napi::Value encode(Info);
    Napi::Value decode(Info);
    Napi::Value dispose(Info);

    // Runs `work` on the projector's thread; its result is converted to a JS value on the JS thread.
    Napi::Value run_job(Info info, std::function<std::function<Napi::Value(Napi::Env)>()> work);

    std::shared_ptr<Projector> projector_;
};

}  // namespace cria
