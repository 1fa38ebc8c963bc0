// The architectures that can be trained. A new one is an entry in trainable_architectures.cc.
#pragma once

#include <vector>

#include "architecture.h"
#include "llama-model.h"

namespace cria {

// Optional parts of a layer (biases, norms of queries and keys, norms behind a part), RoPE, windows and convolutions
// need no entry: they follow from the file's tensors and from llama.cpp's hyper-parameters.
struct TrainableArchitecture {
    const char * name;  // the file's general.architecture
    // Sets the mathematics that neither tensors nor the hyper-parameters of all architectures tell; null: none. Returns
    // the part of the file that the training graph does not model, or null.
    const char * (*describe)(const llama_model & model, Architecture & architecture);
};

const std::vector<TrainableArchitecture> & trainable_architectures();

}  // namespace cria
