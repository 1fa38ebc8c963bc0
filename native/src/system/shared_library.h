// Libraries that are loaded while the process runs.
#pragma once

#include <string>

namespace cria {

// llama.cpp's modules are files of these names: kModulePrefix + "ggml-cpu-haswell" + kModuleSuffix.
#ifdef _WIN32
constexpr const char * kModulePrefix = "";
constexpr const char * kModuleSuffix = ".dll";
#else
constexpr const char * kModulePrefix = "lib";
constexpr const char * kModuleSuffix = ".so";
#endif

// Users of a library's functions: only its holder, or also libraries that are loaded later.
enum class Symbols { own, shared };

// Loads a library by its path, or by its name from the system's folders. It stays loaded. Null when that fails:
// `problem` then has the system's reason.
void * load_library(const std::string & path, std::string & problem, Symbols symbols = Symbols::own);

// A function of a library; null when it has none of this name.
void * find_function(void * library, const char * name);

// Path of the library that a function was loaded from, with "/" between folders; "" when unknown.
std::string path_of_library(const void * function);

}  // namespace cria
