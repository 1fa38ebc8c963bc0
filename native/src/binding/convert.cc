#include "binding/convert.h"

#include <cmath>
#include <cstring>

namespace cria {

Napi::Error to_js_error(Napi::Env env, const Error & error) {
    Napi::Error js = Napi::Error::New(env, error.what());
    Napi::Object value = js.Value();
    value.Set("code", error.code());
    const auto set = [&](const char * key, const std::string & text) {
        if (!text.empty()) value.Set(key, text);
    };
    set("subject", error.subject());
    set("expected", error.expected());
    set("received", error.received());
    set("remedy", error.remedy());
    return js;
}

Napi::Error to_js_error(Napi::Env env, const std::exception & error) {
    return to_js_error(env, Error("internal", error.what()).subject("engine"));
}

std::string describe(const Napi::Value & value) {
    if (value.IsUndefined()) return "undefined";
    if (value.IsNull()) return "null";
    if (value.IsString()) return '"' + value.As<Napi::String>().Utf8Value() + '"';
    if (value.IsNumber() || value.IsBoolean()) return value.ToString().Utf8Value();
    if (value.IsTypedArray())
        return "a typed array of length " + std::to_string(value.As<Napi::TypedArray>().ElementLength());
    if (value.IsArray()) return "an array of length " + std::to_string(value.As<Napi::Array>().Length());
    return value.IsFunction() ? "a function" : value.IsObject() ? "an object" : "a value of another type";
}

OptionReader::OptionReader(const Napi::Value & value, std::string what) : what_(std::move(what)) {
    if (!value.IsObject()) throw Error("bad-option", "must be an object").subject(what_).received(describe(value));
    object_ = value.As<Napi::Object>();
}

void OptionReader::refuse(const char * key, const std::string & expected, const Napi::Value & received) const {
    throw Error("bad-option", "has a wrong value")
        .subject(what_ + "." + key)
        .expected(expected)
        .received(describe(received));
}

Napi::Value OptionReader::value(const char * key) const { return object_.Get(key); }

bool OptionReader::has(const char * key) const {
    const Napi::Value v = value(key);
    return !v.IsUndefined() && !v.IsNull();
}

std::string OptionReader::text(const char * key) const {
    const Napi::Value v = value(key);
    if (!v.IsString()) refuse(key, "a string", v);
    return v.As<Napi::String>().Utf8Value();
}

std::string OptionReader::text(const char * key, const std::string & fallback) const {
    return has(key) ? text(key) : fallback;
}

double OptionReader::number(const char * key, double fallback, double low, double high) const {
    if (!has(key)) return fallback;
    const Napi::Value v = value(key);
    const double x = v.IsNumber() ? v.As<Napi::Number>().DoubleValue() : NAN;
    if (!(x >= low && x <= high)) {
        char range[96];
        std::snprintf(range, sizeof range, "a number from %g to %g", low, high);
        refuse(key, range, v);
    }
    return x;
}

int64_t OptionReader::integer(const char * key, int64_t fallback, int64_t low, int64_t high) const {
    if (!has(key)) return fallback;
    const Napi::Value v = value(key);
    const double x = v.IsNumber() ? v.As<Napi::Number>().DoubleValue() : NAN;
    if (!(x >= double(low) && x <= double(high)) || x != std::floor(x)) {
        refuse(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high), v);
    }
    return int64_t(x);
}

bool OptionReader::boolean(const char * key, bool fallback) const {
    if (!has(key)) return fallback;
    const Napi::Value v = value(key);
    if (!v.IsBoolean()) refuse(key, "true or false", v);
    return v.As<Napi::Boolean>().Value();
}

std::vector<int32_t> OptionReader::int32s(const char * key) const {
    return has(key) ? to_int32s(value(key), (what_ + "." + key).c_str()) : std::vector<int32_t>{};
}

std::vector<std::string> OptionReader::texts(const char * key) const {
    std::vector<std::string> list;
    if (!has(key)) return list;
    const Napi::Value v = value(key);
    if (!v.IsArray()) refuse(key, "an array of strings", v);
    const Napi::Array array = v.As<Napi::Array>();
    for (uint32_t i = 0; i < array.Length(); i++) {
        const Napi::Value entry = array.Get(i);
        if (!entry.IsString()) refuse(key, "an array of strings", entry);
        list.push_back(entry.As<Napi::String>().Utf8Value());
    }
    return list;
}

namespace {

template <typename Array>
Array as_typed(const Napi::Value & value, napi_typedarray_type type, const char * name, const char * expected) {
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) {
        throw Error("bad-option", "has a wrong type").subject(name).expected(expected).received(describe(value));
    }
    return value.As<Array>();
}

}  // namespace

std::vector<int32_t> to_int32s(const Napi::Value & value, const char * name) {
    const auto array = as_typed<Napi::Int32Array>(value, napi_int32_array, name, "an Int32Array");
    return {array.Data(), array.Data() + array.ElementLength()};
}

std::vector<float> to_floats(const Napi::Value & value, const char * name) {
    const auto array = as_typed<Napi::Float32Array>(value, napi_float32_array, name, "a Float32Array");
    return {array.Data(), array.Data() + array.ElementLength()};
}

std::vector<uint8_t> to_bytes(const Napi::Value & value, const char * name) {
    const auto array = as_typed<Napi::Uint8Array>(value, napi_uint8_array, name, "a Uint8Array");
    return {array.Data(), array.Data() + array.ElementLength()};
}

std::string to_text(const Napi::Value & value, const char * name) {
    if (!value.IsString()) throw Error("bad-option", "must be a string").subject(name).received(describe(value));
    return value.As<Napi::String>().Utf8Value();
}

int32_t to_int32(const Napi::Value & value, const char * name) {
    const double x = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
    if (!(x >= 0 && x <= 2147483647.0) || x != std::floor(x)) {
        throw Error("bad-option", "has a wrong value")
            .subject(name)
            .expected("a whole number from 0 to 2147483647")
            .received(describe(value));
    }
    return int32_t(x);
}

int64_t to_id(const Napi::Value & value, const char * name) {
    const double x = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
    if (!(x >= 0 && x < 9e15)) throw Error("bad-option", "must be an id").subject(name).received(describe(value));
    return int64_t(x);
}

Napi::Int32Array from_int32s(Napi::Env env, const std::vector<int32_t> & values) {
    Napi::Int32Array array = Napi::Int32Array::New(env, values.size());
    if (!values.empty()) std::memcpy(array.Data(), values.data(), values.size() * sizeof(int32_t));
    return array;
}

Napi::Uint8Array from_bytes(Napi::Env env, const std::vector<uint8_t> & values) {
    Napi::Uint8Array array = Napi::Uint8Array::New(env, values.size());
    if (!values.empty()) std::memcpy(array.Data(), values.data(), values.size());
    return array;
}

Napi::Float32Array from_floats(Napi::Env env, const std::vector<float> & values) {
    Napi::Float32Array array = Napi::Float32Array::New(env, values.size());
    if (!values.empty()) std::memcpy(array.Data(), values.data(), values.size() * sizeof(float));
    return array;
}

}  // namespace cria
