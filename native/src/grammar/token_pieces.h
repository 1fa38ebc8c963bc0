// The texts of a vocabulary's tokens in alphabetical order of bytes, so that tokens with the same beginning are tried
// together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cria {

struct TokenPiece {
    int32_t token;
    uint32_t begin, length;  // in `bytes`
    uint32_t shared;  // number of bytes in common with the previous piece
};

class TokenPieces {
   public:
    // `pieces[i]` is the text of token i, `ends` are the tokens that end the generation. Leaves out the latter, and
    // tokens without text or with a NUL in it: a grammar's characters allow none of them.
    TokenPieces(const std::vector<std::string> & pieces, std::vector<int32_t> ends);

    const std::vector<TokenPiece> & pieces() const { return pieces_; }
    const uint8_t * bytes() const { return bytes_.data(); }
    // Tokens that end the generation.
    const std::vector<int32_t> & ends() const { return ends_; }
    bool is_end(int32_t token) const;
    int count() const { return count_; }

   private:
    int count_;
    std::vector<TokenPiece> pieces_;
    std::vector<uint8_t> bytes_;
    std::vector<int32_t> ends_;  // sorted
};

}  // namespace cria
