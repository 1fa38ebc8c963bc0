// Checks the header of a projector's file before llama.cpp sees it.
#pragma once

#include <string>

#include "gguf.h"

namespace cria {

// Returns the projector's type, by llama.cpp's name. Throws Error("bad-projector") for a file without a projector, a
// projector only for sound, and impossible sizes: llama.cpp would divide by them, or allocate by them.
std::string check_projector_header(const gguf_context * gguf, const std::string & path);

// Whether vectors of this type form a grid, so that the model must have multi-dimensional positions.
bool needs_mrope(const std::string & type);

}  // namespace cria
