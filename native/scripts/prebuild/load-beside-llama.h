// Included in front of every source of a prebuild (scripts/build.mjs --prebuild). A build knows where llama.cpp's
// libraries lie and has that path compiled in; a prebuild meets them wherever they were installed. The loader finds
// libllama by the prebuild's relative run paths, and ggml's backends are then looked for beside it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "ggml-backend.h"
#include "llama.h"

namespace cria {

inline void load_backends_beside_llama(const char * /* the compiled-in path */) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void *>(&llama_backend_init), &info) == 0 || !info.dli_fname) return;
    const std::string file = info.dli_fname;
    ggml_backend_load_all_from_path(file.substr(0, file.rfind('/')).c_str());
}

}  // namespace cria

#define ggml_backend_load_all_from_path cria::load_backends_beside_llama
