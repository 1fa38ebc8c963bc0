// The functions of libcria-vision.so.
#pragma once

#include <string>

#include "../vision/cria_vision.h"

namespace cria {

class VisionLibrary {
   public:
    // Loads each path once per process. Throws Error("vision-mismatch" | "vision-failed").
    static const VisionLibrary & load(const std::string & path);

    std::string release;
    decltype(&cria_vision_open) open = nullptr;
    decltype(&cria_vision_close) close = nullptr;
    decltype(&cria_vision_describe) describe = nullptr;
    decltype(&cria_vision_layout) layout = nullptr;
    decltype(&cria_vision_encode) encode = nullptr;
    decltype(&cria_picture_size) picture_size = nullptr;
    decltype(&cria_picture_decode) decode = nullptr;

   private:
    explicit VisionLibrary(const std::string & path);
};

}  // namespace cria
