// Projectors and pictures, as a C library (libcria-vision.so) that is loaded only where a model sees images: llama.cpp's
// mtmd without sound, video and files, and stb_image. mtmd's own interface moves with each release; this one is ours.
// It runs on the llama.cpp that the process has loaded. Functions that can fail return a negative number or null, and
// tell the log why, on the calling thread. An exception of the log or of ggml's abort callback ends in such a failure.
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

// Counts up with every change of this file.
#define CRIA_VISION_ABI 3

int32_t cria_vision_abi(void);

// The release of llama.cpp's libraries that it was compiled for, such as "0.5.0".
const char * cria_vision_release(void);

// (token, head) lies at data + token * token_step + head * head_step; steps in floats.
typedef struct {
    const float * data;
    int64_t tokens, heads, token_step, head_step;
} cria_tower_vectors;

// Attention of a tower over one picture. `out` is [queries][heads][head size]. `windows`: of each query the first key that it
// sees, and the one behind the last; null: every query sees all keys.
typedef struct {
    int64_t head_size;
    float scale;
    cria_tower_vectors q, k, v;
    const int32_t * windows;
    float * out;
} cria_tower_attention;

// One thread's part of it. Bits do not depend on how many there are.
typedef void (*cria_attend)(const cria_tower_attention * attention, int32_t thread, int32_t threads);

// Once, before all else: where errors are told, and what computes attention (null: ggml's operations).
void cria_vision_start(ggml_log_callback log, cria_attend attend);

// A projector over a model's vocabulary and embedding size. One thread at a time may encode; layouts may be asked for
// meanwhile. The model must outlive it.
typedef struct cria_vision cria_vision;

typedef struct {
    const char * path;
    const struct llama_model * model;
    int32_t threads;
    // Of an image, where the projector takes images of any size; 0: as the file says.
    int32_t min_tokens, max_tokens;
} cria_vision_options;

// Null when the file cannot be used.
cria_vision * cria_vision_open(const cria_vision_options * options);
void cria_vision_close(cria_vision * vision);

typedef struct {
    int32_t is_causal;       // 0: the tokens of an image see each other in both directions
    int32_t model_is_mrope;  // the model's positions are of several dimensions
    int32_t vector_size;     // floats
} cria_vision_info;

void cria_vision_describe(const cria_vision * vision, cria_vision_info * info);

// A stretch of an image's place in a prompt: a token of the vocabulary, or so many vectors (0: it is a token). Columns
// and rows: the grid that the vectors lie in, where positions are of several dimensions; else 0.
typedef struct {
    int32_t token, vectors, columns, rows;
} cria_vision_piece;

// How an image of so many pixels stands in a prompt, into a list of room for `capacity`; gives their number, which may be more.
int64_t cria_vision_layout(
    const cria_vision * vision, int32_t width, int32_t height, cria_vision_piece * pieces, int64_t capacity);

// An image's vectors, in the order of the layout: `count` floats. Pixels are three bytes each, row after row from the top.
int32_t cria_vision_encode(
    cria_vision * vision, int32_t width, int32_t height, const uint8_t * rgb, float * vectors, int64_t count);

// Width and height of a PNG, JPEG, BMP or GIF, from its header; negative for any other file.
int32_t cria_picture_size(const uint8_t * file, int64_t length, int32_t * width, int32_t * height);

// Its pixels, three bytes each, over white where they are transparent; of a GIF the first picture. `rgb` has room for those of its header. No single allocation exceeds
// what pictures of that size need.
int32_t cria_picture_decode(const uint8_t * file, int64_t length, uint8_t * rgb);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
