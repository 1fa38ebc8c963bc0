#include "grammar/token_pieces.h"

#include <algorithm>
#include <string_view>

namespace cria {

TokenPieces::TokenPieces(const std::vector<std::string> & pieces, std::vector<int32_t> ends)
    : count_(int(pieces.size())), ends_(std::move(ends)) {
    std::vector<int32_t> order;
    for (int32_t token = 0; token < count_; token++) {
        const std::string & piece = pieces[size_t(token)];
        if (!piece.empty() && piece.find('\0') == std::string::npos && !is_end(token)) order.push_back(token);
    }
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const int compared = pieces[size_t(a)].compare(pieces[size_t(b)]);
        return compared != 0 ? compared < 0 : a < b;
    });
    std::string_view before;
    for (const int32_t token : order) {
        const std::string & piece = pieces[size_t(token)];
        size_t shared = 0;
        while (shared < std::min(before.size(), piece.size()) && before[shared] == piece[shared]) shared++;
        pieces_.push_back({token, uint32_t(bytes_.size()), uint32_t(piece.size()), uint32_t(shared)});
        bytes_.insert(bytes_.end(), piece.begin(), piece.end());
        before = piece;
    }
}

bool TokenPieces::is_end(int32_t token) const { return std::binary_search(ends_.begin(), ends_.end(), token); }

}  // namespace cria
