// Projectors and pictures, as a C library (libcria-vision.so) that is loaded only where a model sees images:
// llama.cpp's mtmd without sound, video and files, and stb_image. mtmd's own interface changes with each release; this
// one is ours. It uses the llama.cpp that the process has loaded. A function that fails returns a negative number or
// null, and logs the reason on the calling thread. An exception of the log or of ggml's abort callback also causes such
// a failure.
#pragma once

#include <stdint.h>

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct llama_model;

// Increases with every change of this file.
#define CRIA_VISION_ABI 3

int32_t cria_vision_abi(void);

// The release of llama.cpp's libraries that it was compiled for, such as "0.5.0".
const char * cria_vision_release(void);

// (token, head) lies at data + token * token_step + head * head_step; steps in floats.
typedef struct {
    const float * data;
    int64_t tokens, heads, token_step, head_step;
} cria_tower_vectors;

// Attention of a tower over one picture. `out` is [queries][heads][head size]. `windows`: for each query the first key
// that it sees, and the one after the last; null: every query sees all keys.
typedef struct {
    int64_t head_size;
    float scale;
    cria_tower_vectors q, k, v;
    const int32_t * windows;
    float * out;
} cria_tower_attention;

// Computes one thread's part. Bits do not depend on the number of threads.
typedef void (*cria_attend)(const cria_tower_attention * attention, int32_t thread, int32_t threads);

// Call once, before all others: sets the log callback and the attention function (null: ggml's operations).
void cria_vision_start(ggml_log_callback log, cria_attend attend);

// A projector with a model's vocabulary and embedding size. Only one thread at a time may encode; other threads may ask
// for layouts meanwhile. The model must outlive it.
typedef struct cria_vision cria_vision;

typedef struct {
    const char * path;
    const struct llama_model * model;
    int32_t threads;
    // Limits for one image, for projectors that take images of any size; 0: the file's limits.
    int32_t min_tokens, max_tokens;
} cria_vision_options;

// Null when the file cannot be used.
cria_vision * cria_vision_open(const cria_vision_options * options);
void cria_vision_close(cria_vision * vision);

typedef struct {
    int32_t is_causal;       // 0: the tokens of an image see each other in both directions
    int32_t model_is_mrope;  // the model has multi-dimensional positions
    int32_t vector_size;     // floats
} cria_vision_info;

void cria_vision_describe(const cria_vision * vision, cria_vision_info * info);

// A part of an image's layout in a prompt: a token of the vocabulary (`vectors` is 0), or `vectors` vectors. `columns`
// and `rows` give the vectors' grid for multi-dimensional positions, else 0.
typedef struct {
    int32_t token, vectors, columns, rows;
} cria_vision_piece;

// The layout in a prompt of an image with this many pixels. Writes at most `capacity` pieces and returns their number,
// which may be larger.
int64_t cria_vision_layout(
    const cria_vision * vision, int32_t width, int32_t height, cria_vision_piece * pieces, int64_t capacity);

// An image's vectors, in the order of the layout: `count` floats. Pixels are three bytes each, in rows from the top.
int32_t cria_vision_encode(
    cria_vision * vision, int32_t width, int32_t height, const uint8_t * rgb, float * vectors, int64_t count);

// Width and height of a PNG, JPEG, BMP or GIF, from its header; negative for any other file.
int32_t cria_picture_size(const uint8_t * file, int64_t length, int32_t * width, int32_t * height);

// Decodes its pixels, three bytes each, over white where they are transparent; for a GIF the first picture. `rgb` has
// space for the size in the header. No single allocation exceeds the needs of a picture of that size.
int32_t cria_picture_decode(const uint8_t * file, int64_t length, uint8_t * rgb);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
