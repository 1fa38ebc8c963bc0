// What the header of a projector's file says, checked before llama.cpp sees it.
#pragma once

#include <string>

#include "gguf.h"

namespace cria {

// The projector's type, as llama.cpp names it. Throws Error("bad-projector") for a file that is no projector, one for
// sound alone, and sizes that no projector has: llama.cpp would divide by them, or allocate by them.
std::string check_projector_header(const gguf_context * gguf, const std::string & path);

// Whether vectors of this type lie in a grid, so that the model must have positions of several dimensions.
bool needs_mrope(const std::string & type);

}  // namespace cria
