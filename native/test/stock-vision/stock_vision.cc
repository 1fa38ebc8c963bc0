// llama.cpp's own results for a prompt with a picture: its mtmd, its helper that evaluates the parts, its kernels,
// greedy sampling. None of our code is compiled in. Arguments: the folder of ggml's backends, a model, its projector, a
// picture, a prompt that contains <__media__> once, and the number of tokens to sample. Prints one line of JSON: the
// prompt's parts (tokens, or the number of vectors and, with M-RoPE, their grid), its positions, the sampled tokens,
// the natural logarithms of their probabilities, and the smallest lead of a sampled token's logit over the next best
// one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"
#include "mtmd-helper.h"
#include "mtmd.h"

namespace {

[[noreturn]] void fail(const char * what) {
    std::fprintf(stderr, "stock_vision: %s failed\n", what);
    std::exit(1);
}

void log_errors(ggml_log_level level, const char * text, void *) {
    if (level >= GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
}

template <typename T>
std::string join(const char * format, const T * values, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; i++) {
        char part[32];
        std::snprintf(part, sizeof part, format, values[i]);
        text += (i ? "," : "") + std::string(part);
    }
    return '[' + text + ']';
}

// The positions of the last vector give the grid's width and height.
std::string describe_part(const mtmd_context * mtmd, const mtmd_input_chunk * part) {
    size_t count = 0;
    if (mtmd_input_chunk_get_type(part) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
        const llama_token * tokens = mtmd_input_chunk_get_tokens_text(part, &count);
        return "{\"tokens\":" + join("%d", tokens, count) + '}';
    }
    const mtmd_image_tokens * image = mtmd_input_chunk_get_tokens_image(part);
    count = mtmd_input_chunk_get_n_tokens(part);
    mtmd_decoder_pos last{};
    if (mtmd_decode_use_mrope(mtmd)) {
        last = mtmd_image_tokens_get_decoder_pos(image, 0, count - 1);
        last.x++;
        last.y++;
    }
    return "{\"vectors\":" + std::to_string(count) + ",\"columns\":" + std::to_string(last.x) +
           ",\"rows\":" + std::to_string(last.y) + '}';
}

mtmd_input_chunks * tokenize(const mtmd_context * mtmd, const std::string & prompt, const mtmd_bitmap * picture) {
    const mtmd_input_text text{prompt.c_str(), prompt.size(), false, true};
    mtmd_input_chunks * parts = mtmd_input_chunks_init();
    if (mtmd_tokenize(mtmd, parts, &text, &picture, 1) != 0) fail("tokenizing");
    return parts;
}

std::string describe_parts(const mtmd_context * mtmd, const mtmd_input_chunks * parts) {
    std::string text;
    for (size_t i = 0; i < mtmd_input_chunks_size(parts); i++)
        text += (i ? "," : "") + describe_part(mtmd, mtmd_input_chunks_get(parts, i));
    return '[' + text + ']';
}

// Describes pictures that have a size and no pixels.
std::string describe_sizes(const mtmd_context * mtmd, char ** sizes, int count) {
    std::string text;
    for (int i = 0; i < count; i++) {
        int width = 0, height = 0;
        if (std::sscanf(sizes[i], "%dx%d", &width, &height) != 2) fail("reading a size");
        mtmd_bitmap * picture = mtmd_bitmap_init(width, height, nullptr);
        mtmd_input_chunks * parts = tokenize(mtmd, "<__media__>", picture);
        text += (i ? ",\"" : "\"") + std::string(sizes[i]) + "\":" + describe_parts(mtmd, parts);
        mtmd_input_chunks_free(parts);
        mtmd_bitmap_free(picture);
    }
    return '{' + text + '}';
}

}  // namespace

int main(int argc, char ** argv) {
    if (argc < 7) fail("reading the arguments: backends model projector picture prompt tokens [size ...]");
    llama_log_set(log_errors, nullptr);
    mtmd_helper_log_set(log_errors, nullptr);
    ggml_backend_load_all_from_path(argv[1]);

    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    llama_model * model = llama_model_load_from_file(argv[2], model_params);
    if (!model) fail("loading the model");
    const llama_vocab * vocab = llama_model_get_vocab(model);
    llama_context_params context_params = llama_context_default_params();
    context_params.n_ctx = 512;
    context_params.n_threads = context_params.n_threads_batch = 1;
    context_params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context_params.type_k = context_params.type_v = GGML_TYPE_F32;
    llama_context * context = llama_init_from_model(model, context_params);
    if (!context) fail("making a context");

    mtmd_context_params mtmd_params = mtmd_context_params_default();
    mtmd_params.use_gpu = false;
    mtmd_params.n_threads = 1;
    mtmd_params.warmup = false;
    mtmd_params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    mtmd_context * mtmd = mtmd_init_from_file(argv[3], model, mtmd_params);
    if (!mtmd) fail("opening the projector");
    mtmd_bitmap * picture =
        mtmd_helper_bitmap_init_from_file(mtmd, argv[4], false, mtmd_helper_init_opt_default()).bitmap;
    if (!picture) fail("reading the picture");

    mtmd_input_chunks * parts = tokenize(mtmd, argv[5], picture);
    llama_pos past = 0;
    if (mtmd_helper_eval_chunks(mtmd, context, parts, 0, 0, 512, true, &past) != 0) fail("evaluating the prompt");
    const llama_pos positions = past;

    std::vector<llama_token> tokens;
    std::vector<double> logprobs;
    double margin = std::numeric_limits<double>::infinity();
    const int n_vocab = llama_vocab_n_tokens(vocab);
    for (int n = std::atoi(argv[6]); n > 0; n--) {
        const float * logits = llama_get_logits_ith(context, -1);
        std::vector<float> best(2);
        std::partial_sort_copy(logits, logits + n_vocab, best.begin(), best.end(), std::greater<float>());
        llama_token token = llama_token(std::find(logits, logits + n_vocab, best[0]) - logits);
        double sum = 0;
        for (int i = 0; i < n_vocab; i++) sum += std::exp(double(logits[i]) - best[0]);
        tokens.push_back(token);
        logprobs.push_back(-std::log(sum));
        margin = std::min(margin, double(best[0]) - best[1]);
        llama_batch batch = llama_batch_init(1, 0, 1);
        batch.n_tokens = 1;
        batch.token[0] = token;
        batch.pos[0] = past++;
        batch.n_seq_id[0] = 1;
        batch.seq_id[0][0] = 0;
        batch.logits[0] = true;
        if (llama_decode(context, batch) != 0) fail("decoding");
        llama_batch_free(batch);
    }
    std::printf("{\"layout\":%s,\"positions\":%d,\"tokens\":%s,\"logprobs\":%s,\"margin\":%.6f,\"sizes\":%s}\n",
        describe_parts(mtmd, parts).c_str(), positions, join("%d", tokens.data(), tokens.size()).c_str(),
        join("%.7f", logprobs.data(), logprobs.size()).c_str(), margin,
        describe_sizes(mtmd, argv + 7, argc - 7).c_str());
    mtmd_input_chunks_free(parts);
    mtmd_bitmap_free(picture);
    mtmd_free(mtmd);
    llama_free(context);
    llama_model_free(model);
}
