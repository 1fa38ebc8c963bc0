// Files of a whole model's weights, as full training changes them.
#pragma once

#include <string>
#include <vector>

#include "cria/model.h"

namespace cria {

// Writes the model with these weights in place of its present ones of the same names. Throws
// Error("unsupported-tensor" | "write-failed").
void save_model_with(const Model & model, const std::vector<Weight> & weights, const std::string & path);

// Reads the weights of these names from a model's file into the tensors.
// Throws Error("model-mismatch") when one is missing or shaped otherwise, and the errors of read_gguf.
void read_model_into(const std::vector<Weight> & weights, const std::string & path);

}  // namespace cria
