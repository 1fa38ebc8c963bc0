// Quantizes a GGUF as llama-quantize does: quantize <input> <output> <llama_ftype>
#include <cstdio>
#include <cstdlib>

#include "llama.h"

int main(int argc, char ** argv) {
    if (argc != 4) return 2;
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
    }, nullptr);
    llama_backend_init();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = llama_ftype(std::atoi(argv[3]));
    return int(llama_model_quantize(argv[1], argv[2], &params));
}
