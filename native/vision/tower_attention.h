// Attention of vision towers, block by block: ggml's operations hold heads x patches^2 floats, which for a large picture are
// gigabytes. clip.cpp calls it (tower-attention.patch).
#pragma once

#include "cria_vision.h"
#include "ggml.h"

// What computes it from now on; null: ggml's operations.
void set_tower_attention(cria_attend attend);

// A node [D*H, tokens]. q: [D, H, queries, batch]; k, v: [D, KV, keys, batch]. The mask is null, or [2, queries] I32: from
// which key on each query sees, and up to which, exclusive. Null for other masks, for sinks, and for other types than F32: the
// caller then builds it of ggml's operations. Throws std::runtime_error where these cannot take the mask either.
ggml_tensor * attend_by_blocks(ggml_context * context, ggml_tensor * q, ggml_tensor * k, ggml_tensor * v,
    ggml_tensor * mask, float scale, ggml_tensor * sinks);
