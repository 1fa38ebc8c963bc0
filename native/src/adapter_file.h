// LoRA adapters (Hu et al. 2021, arXiv:2106.09685) as llama.cpp knows them: y = W x + alpha/rank B (A x).
// A new adapter is written as a GGUF with B = 0 and handed to llama.cpp, so that its tensors are live in every context;
// training then writes those very tensors.
#pragma once

#include <string>

#include "cria/model.h"

namespace cria {

// Creates an adapter (options.path empty) or loads one; its A and B are F32 either way. Throws Error.
llama_adapter_lora * load_or_create_adapter(const Model & model, const LoraOptions & options, uint32_t seed);

}  // namespace cria
