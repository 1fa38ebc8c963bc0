// The cuts of a prompt's evaluation into chunks: after `chunk` tokens, and between tokens and vectors of images, which
// llama.cpp evaluates separately. Cuts depend only on the tokens, counted from the first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cria {

struct PrefillCuts {
    size_t chunk;  // most tokens between two cuts
    int32_t first_vector;  // ids of vectors start here
    bool keeps_runs = false;  // evaluated tokens are not cut between vectors, which may have the same position

    // The end of the chunk that begins at `at`, at most the end of the tokens.
    size_t end_after(const std::vector<int32_t> & tokens, size_t at) const {
        const size_t last = std::min(tokens.size(), at + chunk);
        size_t end = at + 1;
        while (end < last && is_vector(tokens[end]) == is_vector(tokens[at])) end++;
        return end;
    }
    // Whether the chunk [at, end) would be the same whatever tokens came next.
    bool is_whole(const std::vector<int32_t> & tokens, size_t at, size_t end) const {
        return end - at == chunk || end < tokens.size();
    }
    // The last place up to `most` that whole chunks reach, from the first token on.
    size_t last_whole(const std::vector<int32_t> & tokens, size_t most) const {
        size_t cut = 0;
        while (cut < std::min(most, tokens.size())) {
            const size_t end = end_after(tokens, cut);
            if (end > most || !is_whole(tokens, cut, end)) break;
            cut = end;
        }
        return cut;
    }
    // The last place up to `most` where both are cut. In `others` only the first `whole` tokens are in whole chunks.
    size_t last_common(
        const std::vector<int32_t> & tokens, const std::vector<int32_t> & others, size_t whole, size_t most) const {
        size_t cut = 0;
        while (cut < std::min({most, tokens.size(), whole})) {
            const size_t end = end_after(tokens, cut);
            if (end > most || !is_whole(tokens, cut, end) || std::min(end_after(others, cut), whole) != end) break;
            cut = end;
        }
        return cut;
    }

    // The last place up to `length` where evaluated tokens may be cut; `length` is less than their number.
    size_t last_cut(const std::vector<int32_t> & tokens, size_t length) const {
        if (!keeps_runs || !is_vector(tokens[length])) return length;
        while (length > 0 && is_vector(tokens[length - 1])) length--;
        return length;
    }

   private:
    bool is_vector(int32_t token) const { return token >= first_vector; }
};

}  // namespace cria
