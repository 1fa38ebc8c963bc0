// Refuses tensors whose type llama.cpp's operations do not take. llama.cpp checks none of them: some of its operations
// assert on ggml's own threads, which ends the process, and others call a function that does not exist.
#pragma once

#include <string>

#include "cria/gguf_file.h"

namespace cria {

// Throws Error("bad-model"), which names the tensor.
void check_tensor_types(const GgufHeader & header, const std::string & path);

}  // namespace cria
