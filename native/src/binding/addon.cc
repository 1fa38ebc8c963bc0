// Entry point of the addon: version check, model loading, GGUF writing. See packages/engine/src/native-types.ts.
#include <map>
#include <set>

#include <napi.h>

#include "binding/convert.h"
#include "binding/environment.h"
#include "binding/native_model.h"
#include "binding/native_projector.h"
#include "cria/backends.h"
#include "cria/file_lock.h"
#include "cria/gguf_file.h"
#include "cria/quantize_file.h"
#include "cria/runtime.h"
#include "cria/scheduler_defaults.h"

namespace cria {

namespace {

EngineOptions read_engine_options(const Napi::Value & value) {
    const OptionReader o(value, "loadModel");
    EngineOptions options;
    options.model.path = o.text("path");
    options.model.device = o.text("device", "auto");
    options.model.gpu_layers = int(o.integer("gpuLayers", -1, -1, 1 << 16));
    options.model.threads = int(o.integer("threads", 0, 0, 512));
    options.model.seed = uint32_t(o.integer("seed", 0, 0, 0xffffffffll));
    const std::string trainable = o.text("trainable", "none");
    if (trainable != "none" && trainable != "lora" && trainable != "full") {
        throw Error("bad-option", "has a wrong value")
            .subject("loadModel.trainable")
            .expected("\"none\", \"lora\" or \"full\"")
            .received('"' + trainable + '"');
    }
    options.model.trainable = trainable == "full"   ? Trainable::full
                              : trainable == "lora" ? Trainable::lora
                                                    : Trainable::none;
    if (o.has("emulatedDevice")) {
        const OptionReader e(o.value("emulatedDevice"), "loadModel.emulatedDevice");
        options.model.emulated_device =
            EmulatedDevice{e.text("kernels", ""), e.texts("refused"), e.text("operations", "")};
    }
    if (o.has("lora")) {
        const OptionReader l(o.value("lora"), "loadModel.lora");
        LoraOptions lora;
        if (l.has("rank")) lora.rank = int(l.integer("rank", 0, 1, 4096));
        if (l.has("alpha")) lora.alpha = float(l.number("alpha", 0, 1e-6, 1e6));
        lora.targets = l.texts("targets");
        lora.path = l.text("path", "");
        options.model.lora = lora;
    }
    if (options.model.trainable == Trainable::lora && !options.model.lora) {
        throw Error("bad-option", "is needed to train a LoRA adapter")
            .subject("loadModel.lora")
            .expected("{ rank, alpha, targets?, path? }")
            .received("nothing");
    }
    if (options.model.trainable == Trainable::full && options.model.lora) {
        throw Error("bad-option", "cannot be combined with full training")
            .subject("loadModel.lora")
            .remedy("use trainable \"lora\", or drop lora");
    }
    if (o.has("contextSize")) options.scheduler.context_size = int(o.integer("contextSize", 0, 1, 1 << 24));
    options.model.context_size = options.scheduler.context_size;
    options.model.scored_context_size = int(o.integer("scoredContextSize", 0, 0, 1 << 24));
    options.scheduler.max_sequences = int(o.integer("maxSequences", 8, 1, 256));
    options.scheduler.kv_type = o.text("kvType", "f32");
    const Napi::Value flash = o.value("flashAttention");
    if (flash.IsBoolean()) {
        options.scheduler.flash_attention = flash.ToBoolean();
    } else if (o.has("flashAttention") && !(flash.IsString() && o.text("flashAttention") == "auto")) {
        throw Error("bad-option", "has a wrong value")
            .subject("loadModel.flashAttention")
            .expected("true, false or \"auto\"")
            .received(describe(flash));
    }
    options.scheduler.prefill_chunk = int(o.integer("prefillChunk", options.scheduler.prefill_chunk, 1, 1 << 16));
    options.scheduler.deterministic = o.boolean("deterministic", true);
    options.scheduler.prefix_reuse = o.boolean("prefixReuse", true);
    const Napi::Value drafting = o.value("drafting");
    if (drafting.IsBoolean()) {
        options.scheduler.drafting = drafting.ToBoolean() ? Drafting::measured : Drafting::never;
    } else if (o.has("drafting")) {
        if (!drafting.IsString() || o.text("drafting") != "always") {
            throw Error("bad-option", "has a wrong value")
                .subject("loadModel.drafting")
                .expected("true, false or \"always\"")
                .received(describe(drafting));
        }
        options.scheduler.drafting = Drafting::always;
    }
    options.scheduler.swap_bytes = size_t(o.number("swapBytes", double(options.scheduler.swap_bytes), 0, 1e15));
    options.trainer.value_head = o.boolean("valueHead", false);
    if (options.trainer.value_head && options.model.trainable == Trainable::none) {
        throw Error("bad-option", "needs a trainable model")
            .subject("loadModel.valueHead")
            .expected("trainable \"lora\" or \"full\"")
            .received("\"none\"");
    }
    options.trainer.memory_budget = size_t(o.number("trainingMemory", double(options.trainer.memory_budget), 0, 1e15));
    return options;
}

// Loading takes seconds, so it runs on its own thread; the engine joins the environment when it is ready.
Napi::Value load_model(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Environment & environment = Environment::of(info.Env());
        EngineOptions options = read_engine_options(info[0]);
        options.model.cancelled = environment.closing;
        start_runtime();
        Environment::handle_process_exit();
        const PendingPromise pending(info.Env(), environment, info.This().As<Napi::Object>());
        environment.spawn([options, pending] {
            pending.settle(options.model.path, [&] {
                auto engine = std::make_shared<Engine>(options);
                return [engine](Napi::Env env) -> Napi::Value { return NativeModel::wrap(env, engine); };
            });
        });
        return pending.promise();
    });
}

Napi::Value runtime_info(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const RuntimeInfo runtime = start_runtime();
        Napi::Object o = Napi::Object::New(info.Env());
        o.Set("llamaVersion", runtime.llama_version);
        o.Set("ggmlVersion", runtime.ggml_version);
        o.Set("librariesFolder", runtime.bins);
        o.Set("cpuKernel", runtime.cpu_kernel);
        o.Set("ggmlBuild", runtime.ggml_build);
        const auto list = [&](const std::vector<std::string> & texts) {
            Napi::Array array = Napi::Array::New(info.Env());
            for (const auto & text : texts) array.Set(array.Length(), text);
            return array;
        };
        o.Set("usableCpuKernels", list(runtime.usable_cpu_kernels));
        o.Set("devices", list(runtime.devices));
        return o;
    });
}

// loadBackend({ name, folder?, search }): [{ name, found, problem }]
Napi::Value load_backend(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        start_runtime();
        const OptionReader o(info[0], "loadBackend");
        const auto text_or_null = [&](const std::string & text) {
            return text.empty() ? info.Env().Null() : Napi::Value(Napi::String::New(info.Env(), text));
        };
        Napi::Array list = Napi::Array::New(info.Env());
        for (const BackendPart & part :
            cria::load_backend(o.text("name", ""), o.text("folder", ""), o.texts("search"))) {
            Napi::Object entry = Napi::Object::New(info.Env());
            entry.Set("name", part.name);
            entry.Set("found", text_or_null(part.found));
            entry.Set("problem", text_or_null(part.problem));
            list.Set(list.Length(), entry);
        }
        return list;
    });
}

// loadVision(library): the release of llama.cpp that it was compiled for
Napi::Value load_vision(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return Napi::String::New(info.Env(), load_vision_library(to_text(info[0], "library")));
    });
}

// tryProjector(model, options) -> promise
Napi::Value try_projector_file(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string model = to_text(info[0], "model");
        const ProjectorOptions options = read_projector_options(info[1]);
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, info.This().As<Napi::Object>());
        environment.spawn([pending, model, options] {
            pending.settle(options.path, [&] {
                try_projector(model, options);
                return nothing();
            });
        });
        return pending.promise();
    });
}

ggml_type parse_type(const std::string & name) {
    static const std::map<std::string, ggml_type> types = {{"f32", GGML_TYPE_F32}, {"f16", GGML_TYPE_F16},
        {"bf16", GGML_TYPE_BF16}, {"q8_0", GGML_TYPE_Q8_0}, {"q4_0", GGML_TYPE_Q4_0}, {"q4_1", GGML_TYPE_Q4_1},
        {"q5_0", GGML_TYPE_Q5_0}, {"q5_1", GGML_TYPE_Q5_1}, {"q2_K", GGML_TYPE_Q2_K}, {"q3_K", GGML_TYPE_Q3_K},
        {"q4_K", GGML_TYPE_Q4_K}, {"q5_K", GGML_TYPE_Q5_K}, {"q6_K", GGML_TYPE_Q6_K}, {"iq2_s", GGML_TYPE_IQ2_S},
        {"iq3_xxs", GGML_TYPE_IQ3_XXS}, {"iq3_s", GGML_TYPE_IQ3_S}, {"iq4_nl", GGML_TYPE_IQ4_NL},
        {"iq4_xs", GGML_TYPE_IQ4_XS}, {"mxfp4", GGML_TYPE_MXFP4}, {"tq1_0", GGML_TYPE_TQ1_0},
        {"tq2_0", GGML_TYPE_TQ2_0}};
    const auto it = types.find(name);
    if (it == types.end()) {
        throw Error("bad-option", "is not a type that can be written")
            .subject("tensor.type")
            .expected(
                "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_K, q3_K, q4_K, q5_K, q6_K, iq2_s, iq3_xxs, iq3_s, "
                "iq4_nl, iq4_xs, mxfp4, tq1_0 or tq2_0")
            .received('"' + name + '"');
    }
    return it->second;
}

void set_metadata(gguf_context * gguf, const std::string & key, const Napi::Value & entry) {
    const OptionReader o(entry, "metadata[\"" + key + "\"]");
    const std::string type = o.text("type");
    if (key.empty() || key == "general.alignment") {
        throw Error("bad-option", "is not a key that can be set").subject("metadata").received('"' + key + '"');
    }
    if (type == "string") return gguf_set_val_str(gguf, key.c_str(), o.text("value").c_str());
    if (type == "uint32") return gguf_set_val_u32(gguf, key.c_str(), uint32_t(o.integer("value", 0, 0, 0xffffffffll)));
    if (type == "int32")
        return gguf_set_val_i32(gguf, key.c_str(), int32_t(o.integer("value", 0, INT32_MIN, INT32_MAX)));
    if (type == "float32") return gguf_set_val_f32(gguf, key.c_str(), float(o.number("value", 0, -3.4e38, 3.4e38)));
    if (type == "bool") return gguf_set_val_bool(gguf, key.c_str(), o.boolean("value", false));
    const std::string of = type == "array" ? o.text("of") : "";
    if (of == "string") {
        const auto texts = o.texts("value");
        std::vector<const char *> pointers;
        pointers.reserve(texts.size());
        for (const auto & text : texts) pointers.push_back(text.c_str());
        return gguf_set_arr_str(gguf, key.c_str(), pointers.data(), pointers.size());
    }
    if (of == "int32" || of == "float32") {
        if (!o.value("value").IsArray())
            throw Error("bad-option", "must be an array")
                .subject("metadata." + key)
                .received(describe(o.value("value")));
        const Napi::Array array = o.value("value").As<Napi::Array>();
        std::vector<int32_t> ints;
        std::vector<float> floats;
        for (uint32_t i = 0; i < array.Length(); i++) {
            const double x = array.Get(i).ToNumber().DoubleValue();
            of == "int32" ? ints.push_back(int32_t(x)) : floats.push_back(float(x));
        }
        return of == "int32" ? gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_INT32, ints.data(), ints.size())
                             : gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_FLOAT32, floats.data(), floats.size());
    }
    throw Error("bad-option", "has a wrong type")
        .subject("metadata." + key)
        .expected("string, uint32, int32, float32, bool, or array of string, int32, float32")
        .received('"' + type + '"');
}

// writeGguf(path, { metadata, tensors: [{ name, type, shape, data: Float32Array }] })
Napi::Value write_gguf_file(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const std::string path = to_text(info[0], "path");
        const OptionReader file(info[1], "gguf");
        auto gguf = std::make_shared<GgufPtr>(gguf_init_empty());
        if (!file.value("metadata").IsObject())
            throw Error("bad-option", "must be an object")
                .subject("gguf.metadata")
                .received(describe(file.value("metadata")));
        const Napi::Object metadata = file.value("metadata").As<Napi::Object>();
        const Napi::Array keys = metadata.GetPropertyNames();
        for (uint32_t i = 0; i < keys.Length(); i++) {
            const std::string key = keys.Get(i).ToString();
            set_metadata(gguf->get(), key, metadata.Get(key));
        }
        if (!file.value("tensors").IsArray())
            throw Error("bad-option", "must be an array")
                .subject("gguf.tensors")
                .received(describe(file.value("tensors")));
        const Napi::Array list = file.value("tensors").As<Napi::Array>();
        auto data = std::make_shared<std::vector<std::vector<uint8_t>>>();
        auto tensors = std::make_shared<std::vector<GgufTensor>>();
        std::set<std::string> names;
        for (uint32_t i = 0; i < list.Length(); i++) {
            const OptionReader t(list.Get(i), "tensors[" + std::to_string(i) + "]");
            const std::string name = t.text("name");
            if (name.empty() || name.size() >= GGML_MAX_NAME || !names.insert(name).second) {
                throw Error("bad-option", "needs a unique name of 1 to 63 bytes")
                    .subject("tensors[" + std::to_string(i) + "].name")
                    .received('"' + name + '"');
            }
            const ggml_type type = parse_type(t.text("type"));
            const Napi::Value shape_value = t.value("shape");
            std::vector<int64_t> shape;
            int64_t count = 1;
            if (shape_value.IsArray()) {
                const Napi::Array dims = shape_value.As<Napi::Array>();
                for (uint32_t k = 0; k < dims.Length(); k++) shape.push_back(dims.Get(k).ToNumber().Int64Value());
            }
            for (const int64_t n : shape) {
                if (n < 1 || n > (int64_t(1) << 31))
                    throw Error("bad-option", "has a dimension out of range").subject(name).received(std::to_string(n));
                if (__builtin_mul_overflow(count, n, &count))
                    throw Error("bad-option", "has a shape with too many elements")
                        .subject(name)
                        .expected("at most 2^63 - 1");
            }
            const std::vector<float> values = to_floats(t.value("data"), name.c_str());
            if (shape.empty() || shape.size() > 4 || count != int64_t(values.size())) {
                throw Error("bad-option", "has a shape that does not fit its data")
                    .subject(name)
                    .expected(std::to_string(count) + " values")
                    .received(std::to_string(values.size()));
            }
            if (shape[0] % ggml_blck_size(type) != 0) {
                throw Error("bad-option", "has rows that do not divide into blocks")
                    .subject(name)
                    .expected("a first dimension that is a multiple of " + std::to_string(ggml_blck_size(type)))
                    .received(std::to_string(shape[0]));
            }
            const int64_t rows = count / shape[0];
            std::vector<uint8_t> bytes(ggml_row_size(type, shape[0]) * size_t(rows));
            ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, shape[0], nullptr);
            data->push_back(std::move(bytes));
            tensors->push_back({name, type, shape, nullptr});
        }
        for (size_t i = 0; i < tensors->size(); i++) (*tensors)[i].data = (*data)[i].data();
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, info.This().As<Napi::Object>());
        environment.spawn([pending, path, gguf, tensors, data] {
            pending.settle(path, [&] {
                write_gguf(path, gguf->get(), *tensors);
                return nothing();
            });
        });
        return pending.promise();
    });
}

// lockFile(path) -> a function that releases the lock, or null when the file is locked. Without that call the lock
// lasts until the process ends.
Napi::Value lock_file(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        std::unique_ptr<FileLock> lock = FileLock::acquire(to_text(info[0], "path"));
        if (!lock) return info.Env().Null();
        // Not freed with the function: the lock still holds when nothing refers to it any more.
        FileLock * held = lock.release();
        auto is_held = std::make_shared<bool>(true);
        return Napi::Function::New(info.Env(), [held, is_held](const Napi::CallbackInfo &) {
            if (*is_held) delete held;
            *is_held = false;
        });
    });
}

// chooseFlashAttention(onCpu, trainable, kvType, headSize): boolean
Napi::Value flash_attention_rule(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return Napi::Boolean::New(info.Env(), choose_flash_attention(info[0].ToBoolean(), info[1].ToBoolean(),
                                                  to_text(info[2], "kvType"), info[3].ToNumber()));
    });
}

Napi::Value quantize_types(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Napi::Array names = Napi::Array::New(info.Env());
        for (const auto & name : list_quantize_types()) names.Set(names.Length(), name);
        return names;
    });
}

Napi::Value trainable_architectures(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Napi::Array names = Napi::Array::New(info.Env());
        for (const auto & name : list_trainable_architectures()) names.Set(names.Length(), name);
        return names;
    });
}

// checkTrainable(path, contextSize)
Napi::Value check_trainable_file(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        start_runtime();
        const std::string path = to_text(info[0], "path");
        const int context_size = int(info[1].ToNumber().Int32Value());
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, info.This().As<Napi::Object>());
        environment.spawn([pending, path, context_size] {
            pending.settle(path, [&] {
                check_trainable(path, context_size);
                return nothing();
            });
        });
        return pending.promise();
    });
}

// quantizeGguf(input, output, type, threads)
Napi::Value quantize_gguf(const Napi::CallbackInfo & info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        start_runtime();
        const QuantizeOptions options{to_text(info[0], "input"), to_text(info[1], "output"), to_text(info[2], "type"),
            int(info[3].ToNumber().Int32Value())};
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, info.This().As<Napi::Object>());
        environment.spawn([pending, options] {
            pending.settle(options.output, [&] {
                quantize_file(options);
                return nothing();
            });
        });
        return pending.promise();
    });
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    Environment & environment = Environment::install(env);
    environment.model_class = Napi::Persistent(NativeModel::define(env));
    environment.projector_class = Napi::Persistent(NativeProjector::define(env));
    exports.Set("runtimeInfo", Napi::Function::New(env, runtime_info));
    exports.Set("loadBackend", Napi::Function::New(env, load_backend));
    exports.Set("loadVision", Napi::Function::New(env, load_vision));
    exports.Set("tryProjector", Napi::Function::New(env, try_projector_file));
    exports.Set("loadModel", Napi::Function::New(env, load_model));
    exports.Set("chooseFlashAttention", Napi::Function::New(env, flash_attention_rule));
    exports.Set("trainableArchitectures", Napi::Function::New(env, trainable_architectures));
    exports.Set("checkTrainable", Napi::Function::New(env, check_trainable_file));
    exports.Set("quantizeTypes", Napi::Function::New(env, quantize_types));
    exports.Set("quantizeGguf", Napi::Function::New(env, quantize_gguf));
    exports.Set("lockFile", Napi::Function::New(env, lock_file));
    exports.Set("writeGguf", Napi::Function::New(env, write_gguf_file));
    return exports;
}

}  // namespace

}  // namespace cria

Napi::Object init_addon(Napi::Env env, Napi::Object exports) { return cria::init(env, exports); }
NODE_API_MODULE(cria, init_addon)
