// Copies or swaps the beginnings of streams of the KV cache on the CPU. llama.cpp's own copy moves the whole stream,
// which for a short prompt in a long context costs more than evaluating the prompt again.
#pragma once

#include <cstddef>
#include <vector>

struct ggml_tensor;
struct llama_context;

namespace cria {

class KvRows {
   public:
    explicit KvRows(llama_context * context);
    // Whether this class supports the cache: plain attention in host memory.
    bool can_copy() const { return !tensors_.empty(); }
    // Copies the first `count` cells of a stream, which hold its first `count` tokens.
    void copy(int from, int to, size_t count) const;
    // Swaps the first `count` cells of two streams.
    void swap(int a, int b, size_t count) const;

   private:
    // All streams of one layer's keys or values: [width, cells, streams], or transposed within each stream.
    struct Tensor {
        ggml_tensor * data;
        bool transposed;
    };
    // Calls act(bytes of a, bytes of b, number of bytes) for all pieces of the first `count` cells of two streams.
    template <typename Act>
    void for_each_piece(int a, int b, size_t count, const Act & act) const;

    std::vector<Tensor> tensors_;
};

}  // namespace cria
