// A llama_batch that owns its memory.
#pragma once

#include "llama.h"

namespace cria {

class DecodeBatch {
   public:
    explicit DecodeBatch(int capacity) : capacity_(capacity), batch_(llama_batch_init(capacity, 0, 1)) {}
    ~DecodeBatch() { llama_batch_free(batch_); }
    DecodeBatch(const DecodeBatch &) = delete;
    DecodeBatch & operator=(const DecodeBatch &) = delete;

    // Returns the token's index in the batch.
    int add(int32_t token, int position, int slot, bool wants_logits) {
        const int i = batch_.n_tokens++;
        batch_.token[i] = token;
        batch_.pos[i] = position;
        batch_.n_seq_id[i] = 1;
        batch_.seq_id[i][0] = slot;
        batch_.logits[i] = wants_logits ? 1 : 0;
        return i;
    }
    void clear() { batch_.n_tokens = 0; }
    int size() const { return batch_.n_tokens; }
    int room() const { return capacity_ - batch_.n_tokens; }
    const llama_batch & get() const { return batch_; }

   private:
    int capacity_;
    llama_batch batch_;
};

}  // namespace cria
