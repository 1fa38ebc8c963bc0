// LoRA adapters (Hu et al. 2021, arXiv:2106.09685) as llama.cpp knows them: y = W x + alpha/rank B (A x).
// A new adapter is written as a GGUF with B = 0 and handed to llama.cpp, so that its tensors are live in every context;
// training then writes those very tensors.
#pragma once

#include <string>
#include <vector>

#include "cria/model.h"

struct ggml_tensor;

namespace cria {

struct AdapterTensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
};

// Creates an adapter (options.path empty) or loads one; its A and B are F32 either way. Throws Error.
llama_adapter_lora * load_or_create_adapter(const Model & model, const LoraOptions & options, uint32_t seed);

// A second adapter object with the model's own adapter's present values; freed with the model.
llama_adapter_lora * copy_adapter(const Model & model);

// The tensors of a model's adapter: A and B of each weight, by the weights' names.
std::vector<ggml_tensor *> list_adapter_tensors(const llama_adapter_lora * adapter);

// Their names, in that order: that of the weight, and ".lora_a" or ".lora_b".
std::vector<std::string> list_adapter_names(const llama_adapter_lora * adapter);

// An adapter file's tensors in that order. Throws Error("adapter-mismatch") when it is not shaped as the model's
// adapter.
std::vector<AdapterTensor> read_adapter_like(const Model & model, const std::string & path);

// Writes tensors in that order as an adapter's file.
void save_adapter_tensors(const Model & model, const std::vector<ggml_tensor *> & tensors, const std::string & path);

}  // namespace cria
