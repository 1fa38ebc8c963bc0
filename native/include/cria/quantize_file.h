// Quantizing a model's file with llama.cpp's own llama_model_quantize.
#pragma once

#include <string>
#include <vector>

namespace cria {

struct QuantizeOptions {
    std::string input;
    std::string output;
    std::string type;  // as llama-quantize calls it: "Q4_K_M"
    int threads = 0;   // 0: all
};

// Names of the types, the most exact first.
std::vector<std::string> list_quantize_types();

// Writes atomically. Takes seconds to minutes and every thread; call it off the JS thread. Throws Error: bad-option,
// file-not-found, not-gguf, truncated, quantize-failed, write-failed.
void quantize_file(const QuantizeOptions & options);

}  // namespace cria
