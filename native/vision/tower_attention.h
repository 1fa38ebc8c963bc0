// Attention of vision towers, block by block. ggml's operations hold heads x patches^2 floats, which are gigabytes for
// a large picture. clip.cpp calls it (mtmd.patch).
#pragma once

#include "cria_vision.h"
#include "ggml.h"

// Sets the function that computes attention; null: ggml's operations.
void set_tower_attention(cria_attend attend);

// A node [D*H, tokens]. q: [D, H, queries, batch]; k, v: [D, KV, keys, batch]. The mask is null, or [2, queries] I32:
// for each query the first key that it sees, and the end, exclusive. Returns null for other masks, for sinks, and for
// types other than F32: the caller then builds it from ggml's operations. Throws std::runtime_error where these cannot
// take the mask either.
ggml_tensor * attend_by_blocks(ggml_context * context, ggml_tensor * q, ggml_tensor * k, ggml_tensor * v,
    ggml_tensor * mask, float scale, ggml_tensor * sinks);
