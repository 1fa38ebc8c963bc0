#include "vision/vision_library.h"

#include <map>
#include <memory>

#include "cria/error.h"
#include "cria/mutex.h"
#include "cria/projector.h"
#include "cria/runtime.h"
#include "system/shared_library.h"
#include "vision/tower_attention.h"

namespace cria {

namespace {

constexpr const char * kRemedy = "install the release that belongs to this addon, or build it again";

}  // namespace

VisionLibrary::VisionLibrary(const std::string & path) {
    // Never closed: projectors that share it are opened and closed at any time. It finds llama.cpp's libraries by the
    // names under which this addon has loaded them.
    std::string problem;
    void * library = load_library(path, problem);
    if (!library) throw Error("vision-failed", "cannot be loaded").subject(path).received(problem).remedy(kRemedy);
    const auto find = [&](auto & function, const char * name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(find_function(library, name));
        if (!function) throw Error("vision-mismatch", "lacks a function").subject(path).expected(name).remedy(kRemedy);
    };
    decltype(&cria_vision_abi) abi = nullptr;
    decltype(&cria_vision_release) compiled_for = nullptr;
    decltype(&cria_vision_start) start = nullptr;
    find(abi, "cria_vision_abi");
    find(compiled_for, "cria_vision_release");
    release = compiled_for();
    // Like the addon, mtmd reads structs of exactly the release that it was compiled with.
    if (abi() != CRIA_VISION_ABI || release != CRIA_LLAMA_RELEASE)
        throw Error("vision-mismatch", "belongs to another release")
            .subject(path)
            .expected("interface " + std::to_string(CRIA_VISION_ABI) + ", llama.cpp " CRIA_LLAMA_RELEASE)
            .received("interface " + std::to_string(abi()) + ", llama.cpp " + release)
            .remedy(kRemedy);
    find(start, "cria_vision_start");
    find(open, "cria_vision_open");
    find(close, "cria_vision_close");
    find(describe, "cria_vision_describe");
    find(layout, "cria_vision_layout");
    find(encode, "cria_vision_encode");
    find(picture_size, "cria_picture_size");
    find(decode, "cria_picture_decode");
    start(capture_log, attend_tower);
}

const VisionLibrary & VisionLibrary::load(const std::string & path) {
    // Never freed: projectors may outlive the statics of this file.
    static auto * const mutex = new Mutex();
    static auto * const loaded = new std::map<std::string, std::unique_ptr<const VisionLibrary>>();
    start_runtime();
    const Locked lock(*mutex);
    auto & library = (*loaded)[path];
    if (!library) library.reset(new VisionLibrary(path));
    return *library;
}

std::string load_vision_library(const std::string & path) { return VisionLibrary::load(path).release; }

}  // namespace cria
