// Converts between JS values and C++. Each precondition is checked once, here, with a message that names the value.
#pragma once

#include <string>
#include <vector>

#include <napi.h>

#include "cria/error.h"

namespace cria {

// A JS Error with code, subject, expected, received and remedy as properties; what() becomes its message.
Napi::Error to_js_error(Napi::Env env, const Error & error);
Napi::Error to_js_error(Napi::Env env, const std::exception & error);

// Reads typed fields of an options object; throws Error("bad-option") naming `subject`.
class OptionReader {
   public:
    OptionReader(const Napi::Value & value, std::string what);
    bool has(const char * key) const;
    std::string text(const char * key) const;
    std::string text(const char * key, const std::string & fallback) const;
    double number(const char * key, double fallback, double low, double high) const;
    int64_t integer(const char * key, int64_t fallback, int64_t low, int64_t high) const;
    bool boolean(const char * key, bool fallback) const;
    Napi::Value value(const char * key) const;
    std::vector<int32_t> int32s(const char * key) const;
    std::vector<std::string> texts(const char * key) const;

   private:
    [[noreturn]] void refuse(const char * key, const std::string & expected, const Napi::Value & received) const;
    Napi::Object object_;
    std::string what_;
};

std::string describe(const Napi::Value & value);
std::vector<int32_t> to_int32s(const Napi::Value & value, const char * name);
std::vector<float> to_floats(const Napi::Value & value, const char * name);
std::vector<uint8_t> to_bytes(const Napi::Value & value, const char * name);
std::string to_text(const Napi::Value & value, const char * name);
int32_t to_int32(const Napi::Value & value, const char * name);  // at least 0
int64_t to_id(const Napi::Value & value, const char * name);
Napi::Int32Array from_int32s(Napi::Env env, const std::vector<int32_t> & values);
Napi::Uint8Array from_bytes(Napi::Env env, const std::vector<uint8_t> & values);
Napi::Float32Array from_floats(Napi::Env env, const std::vector<float> & values);

// Runs `body`, turning Error and std::exception into a thrown JS error.
template <typename Body>
Napi::Value guard(Napi::Env env, Body && body) {
    try {
        return body();
    } catch (const Napi::Error &) {
        throw;
    } catch (const Error & error) {
        throw to_js_error(env, error);
    } catch (const std::exception & error) {
        throw to_js_error(env, error);
    }
}

}  // namespace cria
