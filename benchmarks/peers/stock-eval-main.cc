// Stock llama.cpp as a process that is asked line by line and answers each line with one of JSON: scores of given tokens, and greedy
// ones. Every question begins with an empty cache.
// Arguments: the folder of ggml's backends, a model, how many threads, tokens of context, the type of keys and values (f16 as is the
// default, or f32 without flash attention), and, if wanted, a LoRA adapter.
//   score ID ID ...          {"logprobs":[...]} of the second to the last token, each given those before it
//   greedy COUNT ID ID ...   {"tokens":[...],"margins":[...]}: the likeliest tokens, and by how much each one's logit leads
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

[[noreturn]] void fail(const std::string & what) {
    std::fprintf(stderr, "stock llama.cpp: %s failed\n", what.c_str());
    std::exit(1);
}

void log_errors(ggml_log_level level, const char * text, void *) {
    if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

double log_sum_exp(const float * logits, int count) {
    const float most = *std::max_element(logits, logits + count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += std::exp(double(logits[i]) - most);
    return most + std::log(sum);
}

void print_list(const char * name, const std::vector<double> & values, const char * format) {
    std::printf("\"%s\":[", name);
    for (size_t i = 0; i < values.size(); i++) {
        if (i > 0) std::putchar(',');
        std::printf(format, values[i]);
    }
    std::putchar(']');
}

struct Stock {
    llama_context * context;
    int vocabulary;

    void decode(std::vector<llama_token> & tokens, size_t begin, size_t count, bool all) const {
        llama_batch batch = llama_batch_init(int32_t(count), 0, 1);
        for (size_t i = 0; i < count; i++) {
            batch.token[i] = tokens[begin + i];
            batch.pos[i] = llama_pos(begin + i);
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = all || i + 1 == count;
        }
        batch.n_tokens = int32_t(count);
        if (llama_decode(context, batch) != 0) fail("decoding");
        llama_batch_free(batch);
    }

    void score(std::vector<llama_token> & tokens) const {
        std::vector<double> logprobs;
        const size_t chunk = 512;
        for (size_t begin = 0; begin + 1 < tokens.size(); begin += chunk) {
            const size_t count = std::min(chunk, tokens.size() - 1 - begin);
            decode(tokens, begin, count, true);
            for (size_t i = 0; i < count; i++) {
                const float * logits = llama_get_logits_ith(context, int32_t(i));
                logprobs.push_back(logits[tokens[begin + i + 1]] - log_sum_exp(logits, vocabulary));
            }
        }
        std::putchar('{');
        print_list("logprobs", logprobs, "%.9g");
        std::puts("}");
    }

    void greedy(std::vector<llama_token> & tokens, size_t count) const {
        std::vector<double> sampled, margins;
        size_t done = 0;
        while (sampled.size() < count) {
            for (; done < tokens.size(); done += std::min<size_t>(512, tokens.size() - done))
                decode(tokens, done, std::min<size_t>(512, tokens.size() - done), false);
            const float * logits = llama_get_logits_ith(context, -1);
            const auto best = std::max_element(logits, logits + vocabulary);
            float second = -INFINITY;
            for (const float * other = logits; other < logits + vocabulary; other++)
                if (other != best) second = std::max(second, *other);
            tokens.push_back(llama_token(best - logits));
            sampled.push_back(double(tokens.back()));
            margins.push_back(*best - second);
        }
        std::putchar('{');
        print_list("tokens", sampled, "%.0f");
        std::putchar(',');
        print_list("margins", margins, "%.6g");
        std::puts("}");
    }
};

}  // namespace

int main(int argc, char ** argv) {
    if (argc != 6 && argc != 7) fail("reading the arguments: backends model threads context f16|f32 [adapter]");
    llama_log_set(log_errors, nullptr);
    ggml_backend_load_all_from_path(argv[1]);
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    // Else it prints dots.
    model_params.progress_callback = [](float, void *) { return true; };
    llama_model * model = llama_model_load_from_file(argv[2], model_params);
    if (!model) fail("loading the model");
    llama_context_params params = llama_context_default_params();
    params.n_ctx = uint32_t(std::atoi(argv[4]));
    params.n_threads = params.n_threads_batch = std::atoi(argv[3]);
    // Flash attention, which "auto" means, rounds keys and values whatever their type.
    const bool exact = std::string(argv[5]) == "f32";
    params.type_k = params.type_v = exact ? GGML_TYPE_F32 : GGML_TYPE_F16;
    if (exact) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context = llama_init_from_model(model, params);
    if (!context) fail("making a context");
    if (argc == 7) {
        llama_adapter_lora * adapter = llama_adapter_lora_init(model, argv[6]);
        float scale = 1;
        if (!adapter || llama_set_adapters_lora(context, &adapter, 1, &scale) != 0) fail("loading the adapter");
    }
    const Stock stock{context, llama_vocab_n_tokens(llama_model_get_vocab(model))};
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string command;
        size_t count = 0;
        words >> command;
        if (command == "greedy") words >> count;
        std::vector<llama_token> tokens;
        for (llama_token token; words >> token;) tokens.push_back(token);
        llama_memory_clear(llama_get_memory(context), true);
        if (command == "greedy") {
            stock.greedy(tokens, count);
        } else {
            stock.score(tokens);
        }
        std::fflush(stdout);
    }
    llama_free(context);
    llama_model_free(model);
}
