#include "binding/native_projector.h"

#include "binding/convert.h"

namespace cria {

namespace {

constexpr int64_t kMostPixels = int64_t(1) << 30;

// A number of pixels along a side. An invalid value becomes a size that no image has.
int to_side(const Napi::Value & value) {
    const double side = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0;
    return side >= 1 && side <= 1e9 ? int(side) : 0;
}

int64_t to_pixel_limit(const Napi::Value & value) {
    const double limit = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0;
    if (limit >= 1 && limit <= double(kMostPixels)) return int64_t(limit);
    throw Error("bad-option", "is out of range")
        .subject("maxPixels")
        .expected("1 to " + std::to_string(kMostPixels))
        .received(describe(value));
}

int to_orientation(const Napi::Value & value) {
    const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0;
    if (number >= 1 && number <= 8) return int(number);
    throw Error("bad-option", "is out of range").subject("orientation").expected("1 to 8").received(describe(value));
}

Napi::Object to_js(Napi::Env env, const ImagePiece & piece) {
    Napi::Object object = Napi::Object::New(env);
    if (piece.vectors == 0) {
        object.Set("token", piece.token);
        return object;
    }
    object.Set("vectors", piece.vectors);
    object.Set("columns", piece.columns);
    object.Set("rows", piece.rows);
    return object;
}

}  // namespace

ProjectorOptions read_projector_options(const Napi::Value & value) {
    const OptionReader o(value, "openProjector");
    ProjectorOptions options;
    options.library = o.text("library");
    options.path = o.text("path");
    options.threads = int(o.integer("threads", 1, 1, 512));
    options.min_tokens = int(o.integer("minTokens", 0, 0, 1 << 20));
    options.max_tokens = int(o.integer("maxTokens", 0, 0, 1 << 20));
    if (options.max_tokens > 0 && options.min_tokens > options.max_tokens)
        throw Error("bad-option", "is beyond maxTokens")
            .subject("openProjector.minTokens")
            .expected("at most " + std::to_string(options.max_tokens))
            .received(std::to_string(options.min_tokens));
    return options;
}

Napi::Function NativeProjector::define(Napi::Env env) {
    return DefineClass(env, "NativeProjector",
        {
            InstanceMethod<&NativeProjector::info>("info"),
            InstanceMethod<&NativeProjector::layout>("layout"),
            InstanceMethod<&NativeProjector::encode>("encode"),
            InstanceMethod<&NativeProjector::decode>("decode"),
            InstanceMethod<&NativeProjector::dispose>("dispose"),
        });
}

// The constructor takes the projector through an external value that only wrap() creates.
NativeProjector::NativeProjector(const Napi::CallbackInfo & info) : ObjectWrap(info) {
    if (info.Length() != 1 || !info[0].IsExternal()) {
        throw Napi::TypeError::New(info.Env(), "NativeProjector: made by openProjector only");
    }
    projector_ = *info[0].As<Napi::External<std::shared_ptr<Projector>>>().Data();
}

Napi::Object NativeProjector::wrap(Napi::Env env, std::shared_ptr<Projector> projector) {
    Environment & environment = Environment::of(env);
    environment.projectors.insert(projector);
    return environment.projector_class.New({Napi::External<std::shared_ptr<Projector>>::New(env, &projector)});
}

Napi::Value NativeProjector::run_job(Info info, std::function<std::function<Napi::Value(Napi::Env)>()> work) {
    const PendingPromise pending(info.Env(), Environment::of(info.Env()), Value());
    projector_->jobs().submit([pending, work = std::move(work)] { pending.settle("projector", work); },
        [pending] { pending.reject(Error("aborted", "was disposed of before the job ran").subject("projector")); });
    return pending.promise();
}

Napi::Value NativeProjector::info(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const ProjectorFacts & facts = projector_->facts();
        Napi::Object o = Napi::Object::New(info.Env());
        o.Set("type", facts.type);
        o.Set("vectorSize", facts.vector_size);
        return o;
    });
}

Napi::Value NativeProjector::layout(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        const auto pieces = projector_->layout(to_side(info[0]), to_side(info[1]));
        Napi::Array array = Napi::Array::New(info.Env(), pieces.size());
        for (uint32_t i = 0; i < pieces.size(); i++) array.Set(i, to_js(info.Env(), pieces[i]));
        return array;
    });
}

// encode(file, maxPixels, orientation) -> promise
Napi::Value NativeProjector::encode(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, file = to_bytes(info[0], "file"), limit = to_pixel_limit(info[1]),
                                 orientation = to_orientation(info[2])] {
            auto vectors = std::make_shared<std::vector<float>>(projector_->encode(file, limit, orientation));
            return [vectors](Napi::Env env) -> Napi::Value {
                Napi::Object o = Napi::Object::New(env);
                o.Set("vectors", from_floats(env, *vectors));
                return o;
            };
        });
    });
}

// decode(file, maxPixels, orientation) -> promise
Napi::Value NativeProjector::decode(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        return run_job(info, [this, file = to_bytes(info[0], "file"), limit = to_pixel_limit(info[1]),
                                 orientation = to_orientation(info[2])] {
            auto picture = std::make_shared<Picture>(projector_->decode(file, limit, orientation));
            return [picture](Napi::Env env) -> Napi::Value {
                Napi::Object o = Napi::Object::New(env);
                o.Set("width", picture->width);
                o.Set("height", picture->height);
                o.Set("rgb", from_bytes(env, picture->rgb));
                return o;
            };
        });
    });
}

// Idempotent. Joining the thread can take as long as one image, so it runs off the JS thread.
Napi::Value NativeProjector::dispose(Info info) {
    return guard(info.Env(), [&]() -> Napi::Value {
        Environment & environment = Environment::of(info.Env());
        const PendingPromise pending(info.Env(), environment, Value());
        environment.projectors.erase(projector_);
        projector_->refuse_calls();
        environment.spawn([projector = projector_, pending] {
            projector->close();
            pending.resolve(nothing());
        });
        return pending.promise();
    });
}

}  // namespace cria
