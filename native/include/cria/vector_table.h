// Input vectors of images. They stand in sequences as tokens, with ids from the vocabulary's end on. A defined id stays
// known; its values are available only while they are held. Ids are never reused, so a cache's prefixes need not know
// about images. Threads: any; it has its own lock, taken last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cria/mutex.h"

namespace cria {

// The grid of vectors that were defined together; 0 columns and rows for none.
struct VectorGrid {
    int32_t first = 0, columns = 0, rows = 0;
};

class VectorTable {
   public:
    // Ids begin at `first`; a vector has `width` floats.
    VectorTable(int32_t first, size_t width) : first_(first), end_(first), width_(width) {}

    size_t width() const { return width_; }
    bool is_vector(int32_t token) const { return token >= first_; }

    // Defines `count` vectors with ids from `first` on, which must be the end of the previous definition. `columns` and
    // `rows` give their grid for two-dimensional positions, else 0. Throws Error("bad-option").
    void define(int32_t first, int32_t count, int32_t columns, int32_t rows);
    // Stores the values of vectors that were defined together. Throws Error("bad-option") for other ids or another
    // number of values.
    void hold(int32_t first, std::vector<float> values);
    void drop(int32_t first);

    // Whether no vector was ever defined.
    bool is_empty() const;
    bool knows(int32_t id) const;
    // The grid of a defined id.
    VectorGrid grid_of(int32_t id) const;
    // Throws Error("bad-token") for the first token that is neither in the vocabulary nor a defined id, and
    // Error("vectors-missing") for an id whose values are not held.
    void check_held(const std::vector<int32_t> & tokens, const char * subject) const;
    // Reads the vectors of `count` ids, which may belong to several images. Throws as check_held does.
    void read(const int32_t * ids, size_t count, float * out) const;

   private:
    struct Definition {
        int32_t first, count, columns, rows;
    };
    const Definition * find(int32_t id) const CRIA_REQUIRES(mutex_);
    const float * values_of(int32_t id, const char * subject) const CRIA_REQUIRES(mutex_);
    const Definition & defined_at(int32_t first) const CRIA_REQUIRES(mutex_);

    const int32_t first_;
    mutable Mutex mutex_;
    int32_t end_ CRIA_GUARDED_BY(mutex_);
    const size_t width_;
    std::vector<Definition> definitions_ CRIA_GUARDED_BY(mutex_);  // by id
    std::unordered_map<int32_t, std::vector<float>> held_ CRIA_GUARDED_BY(mutex_);  // by the first id
};

}  // namespace cria
