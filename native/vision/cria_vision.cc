// Our interface in front of mtmd: projectors, layouts, vectors.
#include "cria_vision.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "llama.h"
#include "mtmd.h"
#include "tower_attention.h"
#include "vision_log.h"

namespace {

ggml_log_callback told = nullptr;

struct Free {
    void operator()(mtmd_context * context) const { mtmd_free(context); }
    void operator()(mtmd_bitmap * bitmap) const { mtmd_bitmap_free(bitmap); }
    void operator()(mtmd_input_chunks * chunks) const { mtmd_input_chunks_free(chunks); }
};
using Chunks = std::unique_ptr<mtmd_input_chunks, Free>;

// mtmd's chunks for one image; without pixels it only counts.
Chunks split(const mtmd_context * context, int32_t width, int32_t height, const uint8_t * rgb) {
    const std::unique_ptr<mtmd_bitmap, Free> bitmap(mtmd_bitmap_init(uint32_t(width), uint32_t(height), rgb));
    const mtmd_input_part part{nullptr, bitmap.get()};
    const mtmd_input_part * const parts[] = {&part};
    Chunks chunks(mtmd_input_chunks_init());
    if (mtmd_tokenize_from_parts(context, chunks.get(), parts, 1, false) != 0)
        throw std::runtime_error(
            "an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels cannot be split");
    return chunks;
}

// The grid of an image's vectors, derived from the place of the last one.
cria_vision_piece place_vectors(const mtmd_input_chunk * chunk, bool model_is_mrope) {
    const size_t count = mtmd_input_chunk_get_n_tokens(chunk);
    if (count == 0 || count > (size_t(1) << 24))
        throw std::runtime_error(std::to_string(count) + " vectors are no image");
    cria_vision_piece piece{0, int32_t(count), 0, 0};
    if (!model_is_mrope) return piece;
    const mtmd_decoder_pos last =
        mtmd_image_tokens_get_decoder_pos(mtmd_input_chunk_get_tokens_image(chunk), 0, count - 1);
    piece.columns = int32_t(last.x) + 1;
    piece.rows = int32_t(last.y) + 1;
    if (int64_t(piece.columns) * piece.rows != piece.vectors)
        throw std::runtime_error("the vectors' positions are not those of a grid");
    return piece;
}

// Runs `body` and logs its exceptions.
template <typename Result, typename Body>
Result guard(Result failed, Body && body) {
    try {
        return body();
    } catch (const std::exception & error) {
        log_error(error.what());
    }
    return failed;
}

}  // namespace

void log_error(const std::string & text) {
    if (told) told(GGML_LOG_LEVEL_ERROR, (text + "\n").c_str(), nullptr);
}

struct cria_vision {
    std::unique_ptr<mtmd_context, Free> context;
    int32_t vector_size;
};

int32_t cria_vision_abi(void) { return CRIA_VISION_ABI; }
const char * cria_vision_release(void) { return CRIA_LLAMA_RELEASE; }

void cria_vision_start(ggml_log_callback log, cria_attend attend) {
    told = log;
    set_tower_attention(attend);
    mtmd_log_set(log, nullptr);
}

cria_vision * cria_vision_open(const cria_vision_options * options) {
    return guard<cria_vision *>(nullptr, [&]() -> cria_vision * {
        mtmd_context_params params = mtmd_context_params_default();
        params.use_gpu = false;
        params.print_timings = false;
        params.n_threads = options->threads;
        // Flash attention's rounding must not change vectors; our own attention works in blocks too.
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        params.warmup = false;
        if (options->min_tokens > 0) params.image_min_tokens = options->min_tokens;
        if (options->max_tokens > 0) params.image_max_tokens = options->max_tokens;
        std::unique_ptr<mtmd_context, Free> context(mtmd_init_from_file(options->path, options->model, params));
        if (!context) return nullptr;
        return new cria_vision{std::move(context), llama_model_n_embd_inp(options->model)};
    });
}

void cria_vision_close(cria_vision * vision) { delete vision; }

void cria_vision_describe(const cria_vision * vision, cria_vision_info * info) {
    const mtmd_context * context = vision->context.get();
    info->is_causal = !mtmd_decode_use_non_causal(context, nullptr);
    info->model_is_mrope = mtmd_decode_use_mrope(context);
    info->vector_size = vision->vector_size;
}

int64_t cria_vision_layout(
    const cria_vision * vision, int32_t width, int32_t height, cria_vision_piece * pieces, int64_t capacity) {
    return guard<int64_t>(-1, [&] {
        const mtmd_context * context = vision->context.get();
        const Chunks chunks = split(context, width, height, nullptr);
        int64_t count = 0;
        const auto add = [&](const cria_vision_piece & piece) {
            if (count < capacity) pieces[count] = piece;
            count++;
        };
        for (size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); i++) {
            const mtmd_input_chunk * chunk = mtmd_input_chunks_get(chunks.get(), i);
            if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_IMAGE) {
                add(place_vectors(chunk, mtmd_decode_use_mrope(context)));
                continue;
            }
            size_t tokens = 0;
            const llama_token * ids = mtmd_input_chunk_get_tokens_text(chunk, &tokens);
            for (size_t k = 0; k < tokens; k++) {
                if (ids[k] < 0) throw std::runtime_error("the model's vocabulary lacks a token for the marks of images");
                add({ids[k], 0, 0, 0});
            }
        }
        return count;
    });
}

int32_t cria_vision_encode(
    cria_vision * vision, int32_t width, int32_t height, const uint8_t * rgb, float * vectors, int64_t count) {
    return guard<int32_t>(-1, [&] {
        mtmd_context * context = vision->context.get();
        const Chunks chunks = split(context, width, height, rgb);
        int64_t at = 0;
        for (size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); i++) {
            const mtmd_input_chunk * chunk = mtmd_input_chunks_get(chunks.get(), i);
            if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_IMAGE) continue;
            const int64_t floats = int64_t(mtmd_input_chunk_get_n_tokens(chunk)) * vision->vector_size;
            if (floats > count - at) throw std::runtime_error("the image has more vectors than its layout");
            if (mtmd_encode_chunk(context, chunk) != 0) throw std::runtime_error("the image cannot be encoded");
            std::memcpy(vectors + at, mtmd_get_output_embd(context), size_t(floats) * sizeof(float));
            at += floats;
        }
        if (at != count) throw std::runtime_error("the image has fewer vectors than its layout");
        return 0;
    });
}
