// Checks of a model's metadata that llama.cpp would otherwise assert on, ending the process. Errors name the model.
#pragma once

#include <string>

#include "gguf.h"

namespace cria {

// Checks layer and expert counts, the tokens of the vocabulary and norm epsilons. Throws Error("bad-model").
void check_model_header(const gguf_context * gguf, const std::string & path);

}  // namespace cria
