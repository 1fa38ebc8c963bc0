// llama.cpp's own mtmd with a language model behind it, as a process that is asked line by line and answers each line with one of
// JSON. Nothing is kept from one question to the next, as in a server without a cache of images.
// Arguments: the folder of ggml's backends, a model, its projector, how many threads, tokens of context.
//   encode FILE          reads, decodes and encodes a picture: {"seconds":...}
//   ask FILE TOKENS TEXT shows the picture, then the text, and samples so many greedy tokens: {"seconds":...,"positions":...}
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "ggml-backend.h"
#include "llama.h"
#include "mtmd-helper.h"
#include "mtmd.h"
// C++, in spite of its name.
#include "sha1/sha1.c"

namespace {

[[noreturn]] void fail(const std::string & what) {
    std::fprintf(stderr, "stock mtmd: %s failed\n", what.c_str());
    std::exit(1);
}

void log_errors(ggml_log_level level, const char * text, void *) {
    if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

struct Stock {
    llama_model * model;
    llama_context * context;
    mtmd_context * mtmd;

    mtmd_input_chunks * read(const std::string & file, const std::string & prompt, mtmd_bitmap ** picture) {
        *picture = mtmd_helper_bitmap_init_from_file(mtmd, file.c_str(), false, mtmd_helper_init_opt_default()).bitmap;
        if (!*picture) fail("reading " + file);
        const mtmd_input_text text{prompt.c_str(), prompt.size(), false, true};
        mtmd_input_chunks * parts = mtmd_input_chunks_init();
        const mtmd_bitmap * given = *picture;
        if (mtmd_tokenize(mtmd, parts, &text, &given, 1) != 0) fail("tokenizing");
        return parts;
    }

    void encode(const std::string & file) {
        mtmd_bitmap * picture = nullptr;
        mtmd_input_chunks * parts = read(file, "<__media__>", &picture);
        for (size_t i = 0; i < mtmd_input_chunks_size(parts); i++) {
            const mtmd_input_chunk * part = mtmd_input_chunks_get(parts, i);
            if (mtmd_input_chunk_get_type(part) != MTMD_INPUT_CHUNK_TYPE_IMAGE) continue;
            if (mtmd_encode_chunk(mtmd, part) != 0) fail("encoding");
        }
        mtmd_input_chunks_free(parts);
        mtmd_bitmap_free(picture);
    }

    llama_pos ask(const std::string & file, int tokens, const std::string & text) {
        llama_memory_clear(llama_get_memory(context), true);
        mtmd_bitmap * picture = nullptr;
        mtmd_input_chunks * parts = read(file, "<__media__>" + text, &picture);
        llama_pos past = 0;
        if (mtmd_helper_eval_chunks(mtmd, context, parts, 0, 0, 512, true, &past) != 0) fail("evaluating the prompt");
        const llama_pos positions = past;
        const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
        for (int i = 0; i < tokens; i++) {
            const float * logits = llama_get_logits_ith(context, -1);
            llama_token token = llama_token(std::max_element(logits, logits + vocabulary) - logits);
            // The last one need not be evaluated.
            if (i + 1 < tokens && llama_decode(context, llama_batch_get_one(&token, 1)) != 0) fail("decoding");
        }
        mtmd_input_chunks_free(parts);
        mtmd_bitmap_free(picture);
        return positions;
    }
};

}  // namespace

int main(int argc, char ** argv) {
    if (argc != 6) fail("reading the arguments: backends model projector threads context");
    llama_log_set(log_errors, nullptr);
    mtmd_helper_log_set(log_errors, nullptr);
    ggml_backend_load_all_from_path(argv[1]);
    Stock stock{};
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    stock.model = llama_model_load_from_file(argv[2], model_params);
    if (!stock.model) fail("loading the model");
    llama_context_params context_params = llama_context_default_params();
    context_params.n_ctx = uint32_t(std::atoi(argv[5]));
    context_params.n_threads = context_params.n_threads_batch = std::atoi(argv[4]);
    stock.context = llama_init_from_model(stock.model, context_params);
    if (!stock.context) fail("making a context");
    mtmd_context_params mtmd_params = mtmd_context_params_default();
    mtmd_params.use_gpu = false;
    mtmd_params.print_timings = false;
    mtmd_params.n_threads = std::atoi(argv[4]);
    stock.mtmd = mtmd_init_from_file(argv[3], stock.model, mtmd_params);
    if (!stock.mtmd) fail("opening the projector");

    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string command, file, text;
        int tokens = 0;
        words >> command >> file;
        llama_pos positions = 0;
        const auto started = std::chrono::steady_clock::now();
        if (command == "encode") {
            stock.encode(file);
        } else {
            words >> tokens >> std::ws;
            std::getline(words, text);
            positions = stock.ask(file, tokens, text);
        }
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
        std::printf("{\"seconds\":%.6f,\"positions\":%d}\n", taken.count(), positions);
        std::fflush(stdout);
    }
    mtmd_free(stock.mtmd);
    llama_free(stock.context);
    llama_model_free(stock.model);
}
