// Windows' own functions, and texts as it wants them. Only for system/.
#pragma once

#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace cria {

enum class Slashes { as_given, windows };

// UTF-8 as UTF-16.
inline std::wstring to_wide(const std::string & text, Slashes slashes = Slashes::as_given) {
    std::wstring wide(size_t(MultiByteToWideChar(CP_UTF8, 0, text.data(), int(text.size()), nullptr, 0)), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, text.data(), int(text.size()), wide.data(), int(wide.size()));
    if (slashes == Slashes::windows) std::replace(wide.begin(), wide.end(), L'/', L'\\');
    return wide;
}

// A path as UTF-8, with "/" between folders.
inline std::string from_wide(const std::wstring & wide) {
    std::string text(
        size_t(WideCharToMultiByte(CP_UTF8, 0, wide.data(), int(wide.size()), nullptr, 0, nullptr, nullptr)), '\0');
    WideCharToMultiByte(CP_UTF8, 0, wide.data(), int(wide.size()), text.data(), int(text.size()), nullptr, nullptr);
    std::replace(text.begin(), text.end(), '\\', '/');
    return text;
}

// The system's message about the last call that failed on this thread.
inline std::string describe_last_error() {
    const int number = int(GetLastError());
    return std::system_category().message(number) + " (error " + std::to_string(number) + ")";
}

}  // namespace cria
