// A llama_batch that owns its memory: of tokens, or of vectors instead.
// Where positions have several dimensions, llama.cpp takes those of vectors one dimension after the other, four in all,
// and derives those of tokens from the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "llama.h"
#include "cria/token_places.h"

namespace cria {

class DecodeBatch {
   public:
    // A batch of tokens if `width`, the floats of a vector, is 0. `has_grids`: vectors have rows and columns.
    DecodeBatch(int capacity, size_t width, bool has_grids)
        : capacity_(capacity), width_(width), has_grids_(has_grids && width > 0),
          batch_(llama_batch_init(capacity, int(width), 1)) {}
    ~DecodeBatch() { llama_batch_free(batch_); }
    DecodeBatch(const DecodeBatch &) = delete;
    DecodeBatch & operator=(const DecodeBatch &) = delete;

    // Returns the token's index in the batch.
    int add(int32_t token, int position, int slot, bool wants_logits) {
        batch_.token[batch_.n_tokens] = token;
        return add_place(position, slot, wants_logits);
    }
    // The same for a vector, which is zero until `vector` is filled.
    int add_vector(const TokenPlace & place, int slot, bool wants_logits) {
        std::memset(vector(batch_.n_tokens), 0, width_ * sizeof(float));
        if (has_grids_) places_.push_back(place);
        return add_place(place.time, slot, wants_logits);
    }
    float * vector(int i) { return batch_.embd + size_t(i) * width_; }
    void clear() {
        batch_.n_tokens = 0;
        places_.clear();
    }
    int size() const { return batch_.n_tokens; }
    int room() const { return capacity_ - batch_.n_tokens; }
    // Valid until the batch changes.
    llama_batch get() {
        llama_batch batch = batch_;
        if (has_grids_) batch.pos = list_positions();
        return batch;
    }

   private:
    int add_place(int position, int slot, bool wants_logits) {
        const int i = batch_.n_tokens++;
        batch_.pos[i] = position;
        batch_.n_seq_id[i] = 1;
        batch_.seq_id[i][0] = slot;
        batch_.logits[i] = wants_logits ? 1 : 0;
        return i;
    }

    int32_t * list_positions() {
        const size_t n = places_.size();
        positions_.assign(4 * n, 0);  // nothing uses the fourth dimension
        for (size_t i = 0; i < n; i++) {
            positions_[i] = places_[i].time;
            positions_[n + i] = places_[i].row;
            positions_[2 * n + i] = places_[i].column;
        }
        return positions_.data();
    }

    int capacity_;
    size_t width_;
    bool has_grids_;
    std::vector<TokenPlace> places_;
    std::vector<int32_t> positions_;
    llama_batch batch_;
};

}  // namespace cria
