#include "binding/native_model.h"

#include "binding/convert.h"
#include "binding/native_projector.h"
#include "cria/runtime.h"

namespace cria {

namespace {

const char * finish_reason(FinishReason reason) {
    return reason == FinishReason::stop ? "stop" : reason == FinishReason::length ? "length" : "aborted";
}

Napi::Value to_js(Napi::Env env, const GenerateResult & result, bool has_grammar) {
    Napi::Object stats = Napi::Object::New(env);
    stats.Set("prefillTokens", result.stats.prefill_tokens);
    stats.Set("reusedTokens", result.stats.reused_tokens);
    stats.Set("decodeTokens", result.stats.decode_tokens);
    stats.Set("queueMs", result.stats.queue_ms);
    stats.Set("prefillMs", result.stats.prefill_ms);
    stats.Set("decodeMs", result.stats.decode_ms);
    Napi::Object object = Napi::Object::New(env);
    object.Set("tokenIds", from_int32s(env, result.token_ids));
    object.Set("logprobs", from_floats(env, result.logprobs));
    if (has_grammar) object.Set("constrained", from_bytes(env, result.constrained));
    if (!result.top_tokens.empty()) {
        object.Set("topTokens", from_int32s(env, result.top_tokens));
        object.Set("topLogprobs", from_floats(env, result.top_logprobs));
    }
    object.Set("finishReason", finish_reason(result.finish_reason));
    object.Set("text", result.text);
    if (result.stop_string) object.Set("stopString", *result.stop_string);
    object.Set("stats", stats);
    return object;
}

GenerateParams read_generate_params(const Napi::Value & value) {
    const OptionReader options(value, "generate");
    GenerateParams params;
    params.max_tokens = int(options.integer("maxTokens", 1, 0, 1 << 24));
    params.temperature = float(options.number("temperature", 1, 0, 1e4));
    params.top_p = float(options.number("topP", 1, 1e-6, 1));
    params.top_k = int(options.integer("topK", 0, 0, 1 << 24));
    params.min_p = float(options.number("minP", 0, 0, 0.999999));
    params.seed = uint32_t(options.integer("seed", 0, 0, 0xffffffffll));
    params.stop_tokens = options.int32s("stopTokens");
    params.stop_strings = options.texts("stopStrings");
    params.top_logprobs = int(options.integer("topLogprobs", 0, 0, 64));
    if (options.has("grammar")) params.grammar = options.text("grammar");
    return params;
}

// Left out: the live policy.
PolicyVersion to_version(const Napi::Value & value) {
    return value.IsUndefined() ? kLivePolicy : PolicyVersion(to_id(value, "policy version"));
}

MicroBatch read_micro_batch(const Napi::Value & value) {
    const OptionReader options(value, "microBatch");
    MicroBatch batch;
    batch.rows = int32_t(options.integer("rows", 0, 1, 1 << 20));
    batch.row_length = int32_t(options.integer("rowLength", 0, 1, 1 << 24));
    batch.tokens = options.int32s("tokens");
    batch.positions = options.int32s("positions");
    batch.ends = options.int32s("ends");
    batch.sources = options.int32s("sources");
    batch.targets = options.int32s("targets");
    batch.candidates = options.int32s("candidates");
    batch.vectors = options.int32s("vectors");
    batch.temperature = float(options.number("temperature", 1, 1e-6, 1e6));
    batch.adapter = options.boolean("adapter", true);
    return batch;
}

ScoreRequest read_score_request(const Napi::Value & value) {
    ScoreRequest request;
    if (value.IsUndefined()) return request;
    const OptionReader options(value, "forward");
    request.squares = options.boolean("squares", false);
    request.top = int32_t(options.integer("top", 0, 0, 1 << 24));
    request.top_below = int32_t(options.integer("topBelow", 0, 0, 1 << 24));
    return request;
}

}  // namespace

Napi::Function NativeModel::define(Napi::Env env) {
    return DefineClass(env, "NativeModel",
        {
            InstanceMethod<&NativeModel::info>("info"),
            InstanceMethod<&NativeModel::open_projector>("openProjector"),
            InstanceMethod<&NativeModel::tokenize>("tokenize"),
            InstanceMethod<&NativeModel::tokenize_aside>("tokenizeAside"),
            InstanceMethod<&NativeModel::detokenize>("detokenize"),
            InstanceMethod<&NativeModel::special_tokens>("specialTokens"),
            InstanceMethod<&NativeModel::define_vectors>("defineVectors"),
            InstanceMethod<&NativeModel::hold_vectors>("holdVectors"),
            InstanceMethod<&NativeModel::drop_vectors>("dropVectors"),
            InstanceMethod<&NativeModel::keep_version>("keepVersion"),
            InstanceMethod<&NativeModel::drop_version>("dropVersion"),
            InstanceMethod<&NativeModel::create_sequence>("createSequence"),
            InstanceMethod<&NativeModel::fork_sequence>("forkSequence"),
            InstanceMethod<&NativeModel::dispose_sequence>("disposeSequence"),
            InstanceMethod<&NativeModel::take_over>("takeOver"),
            InstanceMethod<&NativeModel::reset_sequence>("resetSequence"),
            InstanceMethod<&NativeModel::check_fits>("checkFits"),
            InstanceMethod<&NativeModel::sequence_tokens>("sequenceTokens"),
            InstanceMethod<&NativeModel::generate>("generate"),
            InstanceMethod<&NativeModel::abort>("abort"),
            InstanceMethod<&NativeModel::flush>("flush"),
            InstanceMethod<&NativeModel::scheduler_stats>("schedulerStats"),
            InstanceMethod<&NativeModel::forward>("forward"),
            InstanceMethod<&NativeModel::backward>("backward"),
            InstanceMethod<&NativeModel::step>("step"),
            InstanceMethod<&NativeModel::zero_gradients>("zeroGradients"),
            InstanceMethod<&NativeModel::abort_training>("abortTraining"),
            InstanceMethod<&NativeModel::tensors>("tensors"),
            InstanceMethod<&NativeModel::read_tensor>("readTensor"),
            InstanceMethod<&NativeModel::write_tensor>("writeTensor"),
            InstanceMethod<&NativeModel::step_count>("stepCount"),
            InstanceMethod<&NativeModel::set_step_count>("setStepCount"),
            InstanceMethod<&NativeModel::attends_blockwise>("attendsBlockwise"),
            InstanceMethod<&NativeModel::kept_layers>("keptLayers"),
            InstanceMethod<&NativeModel::save_adapter>("saveAdapter"),
            InstanceMethod<&NativeModel::save_version>("saveVersion"),
            InstanceMethod<&NativeModel::save_model>("saveModel"),
            InstanceMethod<&NativeModel::dispose>("dispose"),
        });
}

// The constructor takes the engine through an external value that only wrap() creates.
NativeModel::NativeModel(const Napi::CallbackInfo & info) : ObjectWrap(info) {
    if (info.Length() != 1 || !info[0].IsExternal()) {
        throw Napi::TypeError::New(info.Env(), "NativeModel: made by loadModel only");
    }
    engine_ = *info[0].As<Napi::External<std::shared_ptr<Engine>>>().Data();
}

Napi::Object NativeModel::wrap(Napi::Env env, std::shared_ptr<Engine> engine) {
    Environment & environment = Environment::of(env);
    environment.engines.insert(engine);
    return environment.model_class.New({Napi::External<std::shared_ptr<Engine>>::New(env, &engine)});
}

Napi::Value NativeModel::run_job(Info info, std::function<std::function<Napi::Value(Napi::Env)>()> work) {
    engine_->model();  // throws when disposed
    const PendingPromise pending(info.Env(), Environment::of(info.Env()), Value());
    engine_->jobs().submit([pending, work = std::move(work)] { pending.settle("engine", work); },
        [pending] { pending.reject(Error("aborted", "the model was disposed before the job ran").subject("model")); });
    return pending.promise();
}

Napi::Value NativeModel::info(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const Napi::Env env = info.Env();
        const Model & m = engine_->model();
        const ModelFacts facts = describe_model(m);
        const SchedulerOptions & scheduler = engine_->scheduler_options();
        const RuntimeInfo runtime = start_runtime();
        const auto token = [&](const std::optional<int32_t> & id) {
            return id ? Napi::Value(Napi::Number::New(env, *id)) : env.Null();
        };
        const auto text_or_null = [&](bool is_there, const std::string & text) {
            return is_there ? Napi::Value(Napi::String::New(env, text)) : env.Null();
        };
        Napi::Object o = Napi::Object::New(env);
        o.Set("path", m.options().path);
        o.Set("architecture", facts.architecture);
        o.Set("name", facts.name);
        o.Set("parameterCount", double(facts.parameter_count));
        o.Set("vocabSize", facts.vocab_size);
        o.Set("embeddingSize", facts.embedding_size);
        o.Set("layerCount", facts.layer_count);
        o.Set("headCount", facts.head_count);
        o.Set("kvHeadCount", facts.kv_head_count);
        o.Set("headSize", facts.head_size);
        o.Set("contextSize", scheduler.context_size);
        o.Set("flashAttention", *scheduler.flash_attention);
        o.Set("trainingContextSize", facts.training_context_size);
        o.Set("maxSequences", scheduler.max_sequences);
        o.Set("device", m.device_kind());
        o.Set("notice", text_or_null(!m.notice.empty(), m.notice));
        o.Set("threads", m.threads());
        o.Set("cpuKernel", runtime.cpu_kernel);
        o.Set("ggmlBuild", runtime.ggml_build);
        o.Set("samplesAsTrained", engine_->scheduler().samples_as_trained());
        o.Set("bosToken", token(facts.bos_token));
        o.Set("eosToken", token(facts.eos_token));
        Napi::Array ends = Napi::Array::New(env);
        for (const int32_t end : facts.end_of_generation_tokens) ends.Set(ends.Length(), end);
        o.Set("endOfGenerationTokens", ends);
        o.Set("addBos", facts.adds_bos);
        const Trainable trainable = m.options().trainable;
        o.Set("trainable", trainable == Trainable::full ? "full" : trainable == Trainable::lora ? "lora" : "none");
        Napi::Object weight_types = Napi::Object::New(env);
        for (const auto & [type, count] : facts.weight_types) weight_types.Set(type, count);
        o.Set("weightTypes", weight_types);
        double trained = 0;
        if (trainable != Trainable::none) {
            for (const auto & t : engine_->trainer().tensors()) {
                double size = t.trainable ? 1 : 0;
                for (const int64_t n : t.shape) size *= double(n);
                trained += size;
            }
        }
        o.Set("trainableParameterCount", trained);
        o.Set("chatTemplate", text_or_null(facts.chat_template.has_value(), facts.chat_template.value_or("")));
        return o;
    });
}

// openProjector(options) -> promise; on a new thread, as loading a model.
Napi::Value NativeModel::open_projector(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const ProjectorOptions options = read_projector_options(info[0]);
        const std::shared_ptr<Model> model = engine_->share_model();
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, Value());
        environment.spawn([options, model, pending] {
            pending.settle(options.path, [&] {
                auto projector =
                    std::make_shared<Projector>(std::shared_ptr<llama_model>(model, model->llama()), options);
                return [projector](Napi::Env env) -> Napi::Value { return NativeProjector::wrap(env, projector); };
            });
        });
        return pending.promise();
    });
}

Napi::Value NativeModel::tokenize(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return from_int32s(info.Env(), engine_->model().tokenize(to_text(info[0], "text"), info[1].ToBoolean()));
    });
}

// tokenizeAside(text, special) -> promise; on the job thread, so that a long text does not block the event loop.
Napi::Value NativeModel::tokenize_aside(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, text = to_text(info[0], "text"), special = bool(info[1].ToBoolean())] {
            auto tokens = std::make_shared<std::vector<int32_t>>(engine_->model().tokenize(text, special));
            return [tokens](Napi::Env env) -> Napi::Value { return from_int32s(env, *tokens); };
        });
    });
}

Napi::Value NativeModel::detokenize(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return Napi::String::New(
            info.Env(), engine_->model().detokenize(to_int32s(info[0], "tokenIds"), info[1].ToBoolean()));
    });
}

Napi::Value NativeModel::special_tokens(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const Napi::Env env = info.Env();
        const std::vector<SpecialToken> tokens = engine_->model().special_tokens();
        Napi::Array array = Napi::Array::New(env, tokens.size());
        for (size_t i = 0; i < tokens.size(); i++) {
            Napi::Object token = Napi::Object::New(env);
            token.Set("id", tokens[i].id);
            token.Set("text", tokens[i].text);
            token.Set("control", tokens[i].control);
            token.Set("stripLeft", tokens[i].strip_left);
            token.Set("stripRight", tokens[i].strip_right);
            array.Set(uint32_t(i), token);
        }
        return array;
    });
}

Napi::Value NativeModel::define_vectors(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->model().vectors().define(to_int32(info[0], "first"), to_int32(info[1], "count"),
            to_int32(info[2], "columns"), to_int32(info[3], "rows"));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::hold_vectors(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->model().vectors().hold(to_int32(info[0], "first"), to_floats(info[1], "values"));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::drop_vectors(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        if (!engine_->closed()) engine_->model().vectors().drop(to_int32(info[0], "first"));
        return info.Env().Undefined();
    });
}

// keepVersion(path?) -> promise of a version; on the job thread, behind the optimizer steps that were asked for before.
Napi::Value NativeModel::keep_version(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, path = info[0].IsUndefined() ? "" : to_text(info[0], "path")] {
            const PolicyVersion version = engine_->scheduler().keep_version(path);
            return [version](Napi::Env env) -> Napi::Value { return Napi::Number::New(env, double(version)); };
        });
    });
}

// dropVersion(version) -> promise
Napi::Value NativeModel::drop_version(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, version = to_version(info[0])] {
            engine_->scheduler().drop_version(version);
            return nothing();
        });
    });
}

// createSequence(version?)
Napi::Value NativeModel::create_sequence(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return Napi::Number::New(info.Env(), double(engine_->scheduler().create_sequence(to_version(info[0]))));
    });
}

Napi::Value NativeModel::fork_sequence(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return Napi::Number::New(info.Env(), double(engine_->scheduler().fork(SequenceId(to_id(info[0], "sequence")))));
    });
}

// takeOver(sequence, version?)
Napi::Value NativeModel::take_over(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->scheduler().take_over(SequenceId(to_id(info[0], "sequence")), to_version(info[1]));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::dispose_sequence(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        if (!engine_->closed()) engine_->scheduler().dispose(SequenceId(to_id(info[0], "sequence")));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::reset_sequence(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->scheduler().reset(SequenceId(to_id(info[0], "sequence")));
        return info.Env().Undefined();
    });
}

// checkFits(sequence, deltaLength, maxTokens)
Napi::Value NativeModel::check_fits(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->scheduler().check_fits(SequenceId(to_id(info[0], "sequence")),
            size_t(to_int32(info[1], "deltaLength")), to_int32(info[2], "maxTokens"));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::sequence_tokens(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return from_int32s(info.Env(), engine_->scheduler().tokens(SequenceId(to_id(info[0], "sequence"))));
    });
}

// generate(sequence, delta, params, onText?) -> { request, promise }
Napi::Value NativeModel::generate(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const Napi::Env env = info.Env();
        const SequenceId sequence = SequenceId(to_id(info[0], "sequence"));
        std::vector<int32_t> delta = to_int32s(info[1], "deltaTokenIds");
        GenerateParams params = read_generate_params(info[2]);
        Scheduler & scheduler = engine_->scheduler();
        Environment & environment = Environment::of(env);
        std::function<void(std::string)> on_text;
        if (info[3].IsFunction()) {
            std::shared_ptr<Napi::FunctionReference> callback(
                new Napi::FunctionReference(Napi::Persistent(info[3].As<Napi::Function>())),
                [](Napi::FunctionReference * r) {
                r->SuppressDestruct();
                delete r;
            });
            on_text = [settler = environment.settler, callback](std::string text) {
                settler->post([callback, text = std::move(text)](
                                  Napi::Env env) { callback->Call({Napi::String::New(env, text)}); });
            };
        }
        const PendingPromise pending(env, environment, Value());
        RequestId request = 0;
        const bool has_grammar = params.grammar.has_value();
        const auto settle = [pending, has_grammar](GenerateResult result) {
            if (result.error) {
                pending.reject(*result.error);
            } else {
                pending.resolve([result = std::move(result), has_grammar](
                                    Napi::Env env) { return to_js(env, result, has_grammar); });
            }
        };
        try {
            request = scheduler.submit(sequence, std::move(delta), std::move(params), settle, std::move(on_text));
        } catch (const Error & error) {
            pending.reject(error);
        }
        Napi::Object o = Napi::Object::New(env);
        o.Set("request", double(request));
        o.Set("promise", pending.promise());
        return o;
    });
}

Napi::Value NativeModel::abort(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        if (!engine_->closed()) engine_->scheduler().abort(RequestId(to_id(info[0], "request")));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::flush(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Scheduler & scheduler = engine_->scheduler();
        const PendingPromise pending(info.Env(), Environment::of(info.Env()), Value());
        scheduler.flush([pending] { pending.resolve(nothing()); });
        return pending.promise();
    });
}

Napi::Value NativeModel::scheduler_stats(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const SchedulerStats s = engine_->scheduler().stats();
        Napi::Object o = Napi::Object::New(info.Env());
        o.Set("prefillTokens", double(s.prefill_tokens));
        o.Set("reusedTokens", double(s.reused_tokens));
        o.Set("decodeTokens", double(s.decode_tokens));
        o.Set("paddingTokens", double(s.padding_tokens));
        o.Set("draftTokens", double(s.draft_tokens));
        o.Set("acceptedDraftTokens", double(s.accepted_draft_tokens));
        o.Set("movedSequences", double(s.moved_sequences));
        o.Set("decodeCalls", double(s.decode_calls));
        o.Set("evictions", double(s.evictions));
        o.Set("restores", double(s.restores));
        o.Set("recomputedTokens", double(s.recomputed_tokens));
        o.Set("llamaSeconds", s.llama_seconds);
        o.Set("busySeconds", s.busy_seconds);
        o.Set("sequences", double(s.sequences));
        o.Set("residentSequences", double(s.resident_sequences));
        o.Set("requests", double(s.requests));
        o.Set("swappedBytes", double(s.swapped_bytes));
        return o;
    });
}

// forward(microBatch, keep, { squares?, top?, topBelow? }?)
//   -> { logprobs, entropy, sumSquares?, candidates?, topTokens?, topLogprobs? }
Napi::Value NativeModel::forward(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        auto batch = std::make_shared<MicroBatch>(read_micro_batch(info[0]));
        const bool keep = info[1].ToBoolean();
        const ScoreRequest request = read_score_request(info[2]);
        engine_->trainer();
        return run_job(info, [this, batch, keep, request] {
            auto scores = std::make_shared<Scores>(engine_->trainer().forward(*batch, keep, request));
            return [scores](Napi::Env env) -> Napi::Value {
                Napi::Object o = Napi::Object::New(env);
                o.Set("logprobs", from_floats(env, scores->logprobs));
                o.Set("entropy", from_floats(env, scores->entropy));
                if (!scores->squares.empty()) o.Set("sumSquares", from_floats(env, scores->squares));
                if (!scores->candidates.empty()) o.Set("candidates", from_floats(env, scores->candidates));
                if (!scores->top_tokens.empty()) {
                    o.Set("topTokens", from_int32s(env, scores->top_tokens));
                    o.Set("topLogprobs", from_floats(env, scores->top_logprobs));
                }
                return o;
            };
        });
    });
}

Napi::Value NativeModel::backward(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        auto gradients = std::make_shared<ScoreGradients>();
        gradients->logprobs = to_floats(info[0], "dLogprobs");
        gradients->entropy = to_floats(info[1], "dEntropy");
        if (!info[2].IsUndefined()) gradients->candidates = to_floats(info[2], "dCandidates");
        engine_->trainer();
        return run_job(info, [this, gradients] {
            engine_->trainer().backward(*gradients);
            return nothing();
        });
    });
}

Napi::Value NativeModel::step(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const OptionReader options(info[0], "optimizer");
        AdamW adam;
        adam.learning_rate = float(options.number("learningRate", 1e-3, 0, 1e6));
        adam.beta1 = float(options.number("beta1", 0.9, 0, 0.9999999));
        adam.beta2 = float(options.number("beta2", 0.999, 0, 0.9999999));
        adam.epsilon = float(options.number("epsilon", 1e-8, 0, 1));
        adam.weight_decay = float(options.number("weightDecay", 0, 0, 1e6));
        adam.max_grad_norm = float(options.number("maxGradNorm", 0, 0, 1e30));
        engine_->trainer();
        return run_job(info, [this, adam] {
            const StepResult result = engine_->trainer().step(adam);
            return [result](Napi::Env env) -> Napi::Value {
                Napi::Object o = Napi::Object::New(env);
                o.Set("gradNorm", result.grad_norm);
                o.Set("stepped", result.stepped);
                return o;
            };
        });
    });
}

Napi::Value NativeModel::zero_gradients(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->trainer();
        return run_job(info, [this] {
            engine_->trainer().zero_gradients();
            return nothing();
        });
    });
}

Napi::Value NativeModel::abort_training(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        if (!engine_->closed()) engine_->abort_training();
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::tensors(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const auto list = engine_->trainer().tensors();
        Napi::Array array = Napi::Array::New(info.Env(), list.size());
        for (uint32_t i = 0; i < list.size(); i++) {
            Napi::Object o = Napi::Object::New(info.Env());
            Napi::Array shape = Napi::Array::New(info.Env(), list[i].shape.size());
            for (uint32_t k = 0; k < list[i].shape.size(); k++) shape.Set(k, double(list[i].shape[k]));
            o.Set("name", list[i].name);
            o.Set("type", list[i].type);
            o.Set("shape", shape);
            o.Set("trainable", list[i].trainable);
            array.Set(i, o);
        }
        return array;
    });
}

// readTensor(name, what, version?) -> promise
Napi::Value NativeModel::read_tensor(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string name = to_text(info[0], "name"), what = to_text(info[1], "what");
        engine_->trainer();
        return run_job(info, [this, name, what, version = to_version(info[2])] {
            auto values = std::make_shared<std::vector<float>>(version == kLivePolicy
                                                                   ? engine_->trainer().read_tensor(name, what)
                                                                   : engine_->scheduler().read_version(version, name));
            return [values](Napi::Env env) -> Napi::Value { return from_floats(env, *values); };
        });
    });
}

// writeTensor(name, what, values, version?) -> promise
Napi::Value NativeModel::write_tensor(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string name = to_text(info[0], "name"), what = to_text(info[1], "what");
        auto values = std::make_shared<std::vector<float>>(to_floats(info[2], "values"));
        engine_->trainer();
        return run_job(info, [this, name, what, values, version = to_version(info[3])] {
            if (version == kLivePolicy) engine_->trainer().write_tensor(name, what, *values);
            else engine_->scheduler().write_version(version, name, *values);
            return nothing();
        });
    });
}

Napi::Value NativeModel::step_count(Info info) {
    return guard(info.Env(),
        [&]() -> Napi::Value { return Napi::Number::New(info.Env(), double(engine_->trainer().step_count())); });
}

Napi::Value NativeModel::set_step_count(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        engine_->trainer().set_step_count(to_id(info[0], "stepCount"));
        return info.Env().Undefined();
    });
}

Napi::Value NativeModel::attends_blockwise(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const bool trains = engine_->model().options().trainable != Trainable::none;
        return Napi::Boolean::New(info.Env(), trains && engine_->trainer().attends_blockwise());
    });
}

Napi::Value NativeModel::kept_layers(Info info) {
    return guard(
        info.Env(), [&]() -> Napi::Value { return Napi::Number::New(info.Env(), engine_->trainer().kept_layers()); });
}

Napi::Value NativeModel::save_adapter(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string path = to_text(info[0], "path");
        return run_job(info, [this, path] {
            cria::save_adapter(engine_->model(), path);
            return nothing();
        });
    });
}

// saveVersion(version, path) -> promise
Napi::Value NativeModel::save_version(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, version = to_version(info[0]), path = to_text(info[1], "path")] {
            engine_->scheduler().save_version(version, path);
            return nothing();
        });
    });
}

Napi::Value NativeModel::save_model(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string path = to_text(info[0], "path");
        return run_job(info, [this, path] {
            cria::save_model(engine_->model(), path);
            return nothing();
        });
    });
}

// Idempotent. Joining threads can take as long as one decode step, so it runs off the JS thread.
Napi::Value NativeModel::dispose(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, Value());
        environment.engines.erase(engine_);
        engine_->refuse_calls();
        environment.spawn([engine = engine_, pending] {
            engine->close();
            pending.resolve(nothing());
        });
        return pending.promise();
    });
}

}  // namespace cria
