// Attention of vision towers with our own products: libcria-vision.so calls it instead of ggml's operations.
#pragma once

#include "../vision/cria_vision.h"

namespace cria {

// Computes this thread's part. Memory: only the scores of a block of queries, one float per query of the block and key.
void attend_tower(const cria_tower_attention * attention, int32_t thread, int32_t threads);

}  // namespace cria
