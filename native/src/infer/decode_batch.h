// A llama_batch that owns its memory: of tokens, or of vectors in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "llama.h"

namespace cria {

class DecodeBatch {
   public:
    // Of tokens where `width`, the floats of a vector, is 0.
    DecodeBatch(int capacity, size_t width)
        : capacity_(capacity), width_(width), batch_(llama_batch_init(capacity, int(width), 1)) {}
    ~DecodeBatch() { llama_batch_free(batch_); }
    DecodeBatch(const DecodeBatch &) = delete;
    DecodeBatch & operator=(const DecodeBatch &) = delete;

    // Returns the token's index in the batch.
    int add(int32_t token, int position, int slot, bool wants_logits) {
        batch_.token[batch_.n_tokens] = token;
        return add_place(position, slot, wants_logits);
    }
    // The same for a vector, which is zero until it is written to `vector`.
    int add_vector(int position, int slot, bool wants_logits) {
        std::memset(vector(batch_.n_tokens), 0, width_ * sizeof(float));
        return add_place(position, slot, wants_logits);
    }
    float * vector(int i) { return batch_.embd + size_t(i) * width_; }
    void clear() { batch_.n_tokens = 0; }
    int size() const { return batch_.n_tokens; }
    int room() const { return capacity_ - batch_.n_tokens; }
    const llama_batch & get() const { return batch_; }

   private:
    int add_place(int position, int slot, bool wants_logits) {
        const int i = batch_.n_tokens++;
        batch_.pos[i] = position;
        batch_.n_seq_id[i] = 1;
        batch_.seq_id[i][0] = slot;
        batch_.logits[i] = wants_logits ? 1 : 0;
        return i;
    }

    int capacity_;
    size_t width_;
    llama_batch batch_;
};

}  // namespace cria
