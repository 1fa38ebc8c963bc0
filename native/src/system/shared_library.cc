#include "system/shared_library.h"

#ifdef _WIN32
#include "system/windows.h"
#else
#include <dlfcn.h>
#endif

namespace cria {

#ifdef _WIN32

void * load_library(const std::string & path, std::string & problem, Symbols) {
    // A library with a path finds those that it needs in its own folder, as those of a Node addon are found.
    const bool has_folder = path.find_first_of("/\\") != std::string::npos;
    const DWORD search = has_folder ? LOAD_WITH_ALTERED_SEARCH_PATH : 0;
    HMODULE library = LoadLibraryExW(to_wide(path, Slashes::windows).c_str(), nullptr, search);
    if (!library) problem = path + ": " + describe_last_error();
    return library;
}

void * find_function(void * library, const char * name) {
    return reinterpret_cast<void *>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string path_of_library(const void * function) {
    constexpr DWORD kAsked = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    HMODULE library = nullptr;
    if (!function || !GetModuleHandleExW(kAsked, static_cast<LPCWSTR>(function), &library)) return "";
    std::wstring path(32768, L'\0');
    path.resize(GetModuleFileNameW(library, path.data(), DWORD(path.size())));
    return from_wide(path);
}

#else

void * load_library(const std::string & path, std::string & problem, Symbols symbols) {
    void * library = dlopen(path.c_str(), RTLD_NOW | (symbols == Symbols::shared ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library) return library;
    if (const char * error = dlerror()) problem = error;
    return nullptr;
}

void * find_function(void * library, const char * name) { return dlsym(library, name); }

std::string path_of_library(const void * function) {
    Dl_info info;
    return function && dladdr(function, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

#endif

}  // namespace cria
