// The JS class NativeModel: thin, typed access to one Engine. Its contract is packages/engine/src/native-types.ts.
#pragma once

#include <memory>

#include <napi.h>

#include "binding/environment.h"

namespace cria {

class NativeModel : public Napi::ObjectWrap<NativeModel> {
   public:
    static Napi::Function define(Napi::Env env);
    static Napi::Object wrap(Napi::Env env, std::shared_ptr<Engine> engine);
    explicit NativeModel(const Napi::CallbackInfo & info);

   private:
    using Info = const Napi::CallbackInfo &;
    Napi::Value info(Info);
    Napi::Value open_projector(Info);
    Napi::Value tokenize(Info);
    Napi::Value tokenize_aside(Info);
    Napi::Value detokenize(Info);
    Napi::Value special_tokens(Info);
    Napi::Value define_vectors(Info);
    Napi::Value hold_vectors(Info);
    Napi::Value drop_vectors(Info);
    Napi::Value keep_version(Info);
    Napi::Value drop_version(Info);
    Napi::Value create_sequence(Info);
    Napi::Value fork_sequence(Info);
    Napi::Value take_over(Info);
    Napi::Value dispose_sequence(Info);
    Napi::Value reset_sequence(Info);
    Napi::Value check_fits(Info);
    Napi::Value sequence_tokens(Info);
    Napi::Value generate(Info);
    Napi::Value abort(Info);
    Napi::Value flush(Info);
    Napi::Value scheduler_stats(Info);
    Napi::Value forward(Info);
    Napi::Value backward(Info);
    Napi::Value step(Info);
    Napi::Value zero_gradients(Info);
    Napi::Value abort_training(Info);
    Napi::Value tensors(Info);
    Napi::Value read_tensor(Info);
    Napi::Value write_tensor(Info);
    Napi::Value step_count(Info);
    Napi::Value set_step_count(Info);
    Napi::Value attends_blockwise(Info);
    Napi::Value kept_layers(Info);
    Napi::Value save_adapter(Info);
    Napi::Value save_version(Info);
    Napi::Value save_model(Info);
    Napi::Value dispose(Info);

    // Runs `work` on the job thread; its result is converted to a JS value on the JS thread.
    Napi::Value run_job(Info info, std::function<std::function<Napi::Value(Napi::Env)>()> work);

    std::shared_ptr<Engine> engine_;
};

}  // namespace cria
