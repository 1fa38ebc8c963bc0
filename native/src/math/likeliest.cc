#include "math/likeliest.h"

#include <algorithm>

namespace cria {

// Keeps a heap of the best so far, with the least likely of them on top.
void find_likeliest(const float * logits, int n, size_t count, std::vector<int32_t> & tokens) {
    const auto likelier = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
    tokens.clear();
    for (int32_t i = 0; i < n; i++) {
        if (tokens.size() == count) {
            if (logits[i] <= logits[tokens.front()]) continue;
            std::pop_heap(tokens.begin(), tokens.end(), likelier);
            tokens.pop_back();
        }
        tokens.push_back(i);
        std::push_heap(tokens.begin(), tokens.end(), likelier);
    }
    std::sort_heap(tokens.begin(), tokens.end(), likelier);
}

}  // namespace cria
