// Makes the attention of decode steps give the bits of prefill on the CPU, so that KV is a function of the tokens alone.
// With one query a sequence, ggml multiplies each head's row with the values by its vector kernel; with several rows, by
// its matrix kernel, which adds in another order. Query heads that share a KV head are rows of one matrix too: seen so, a
// decode step takes the matrix kernel, which is also faster, for each value is read once for the whole group.
// Works on the nodes of llama.cpp's graph just before they are computed. Only shapes and strides change, no data moves.
#pragma once

#include <vector>

#include "ggml.h"

struct llama_model;

namespace cria {

class HeadFolder {
   public:
    explicit HeadFolder(const llama_model * model);
    HeadFolder(const HeadFolder &) = delete;
    HeadFolder & operator=(const HeadFolder &) = delete;

    // Whether every row of attention then comes from the same kernel, however many rows there are: several query heads
    // for each KV head in all layers, and a CPU whose matrix kernels start at two rows.
    static bool makes_rows_equal(const llama_model * model);

    // Changes the node if it belongs to the attention of a decode step.
    void fold(ggml_tensor * node);

   private:
    // Stand-ins for one layer's operands: the same data in another shape.
    struct Layer {
        ggml_tensor query, scores, weights;
    };
    std::vector<Layer> layers_;
};

}  // namespace cria
