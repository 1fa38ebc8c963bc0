// Attention of vision towers on our own products: libcria-vision.so calls it in the place of ggml's operations.
#pragma once

#include "../vision/cria_vision.h"

namespace cria {

// This thread's part. Blocks of queries hold their scores alone: so many floats as a block has queries, times the keys.
void attend_tower(const cria_tower_attention * attention, int32_t thread, int32_t threads);

}  // namespace cria
