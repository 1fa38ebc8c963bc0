// Quantizes a model's file with llama.cpp's own llama_model_quantize.
#pragma once

#include <string>
#include <vector>

namespace cria {

struct QuantizeOptions {
    std::string input;
    std::string output;
    std::string type;  // llama-quantize's name, such as "Q4_K_M"
    int threads = 0;   // 0: all
};

// Names of the types, from most to least exact.
std::vector<std::string> list_quantize_types();

// Writes atomically. Takes seconds to minutes on all threads: call it off the JS thread. Throws Error: bad-option,
// file-not-found, not-gguf, truncated, quantize-failed, write-failed.
void quantize_file(const QuantizeOptions & options);

}  // namespace cria
