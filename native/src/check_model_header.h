// What llama.cpp takes for granted of a model's metadata and would end the process for: refused here, with its name.
#pragma once

#include <string>

#include "gguf.h"

namespace cria {

// Layer and expert counts, the tokens of the vocabulary, norm epsilons. Throws Error("bad-model").
void check_model_header(const gguf_context * gguf, const std::string & path);

}  // namespace cria
