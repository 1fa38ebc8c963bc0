// A grammar, and which tokens of a vocabulary it allows where. Compiled on any thread; then the scheduler's thread
// alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"
#include "grammar/token_pieces.h"

namespace cria {

// Most ways followed to find what is allowed at one place, which bounds how long other sequences wait for it.
constexpr size_t kMostWork = 1000000;
// What one grammar keeps of what it found, about. Beyond it everything is forgotten and found again: the same, but
// slower.
constexpr size_t kMostGrammarBytes = size_t(32) << 20;

struct TokenMask {
    std::vector<uint64_t> bits;  // by token, those that end the generation left out
    size_t count = 0;
    bool may_end = false;
};

// How far one request has come.
struct GrammarPosition {
    uint64_t generation = 0;  // of the states; another one: found anew from the tokens
    GrammarStates::State state = 0;
    size_t read = 0;  // tokens
};

class Grammar {
   public:
    // Throws Error("bad-grammar").
    Grammar(const std::string & text, const GrammarTokens & tokens, size_t most_bytes = kMostGrammarBytes);

    // What may follow `sampled`, all of which the grammar allowed. The position must be the request's own; the answer
    // depends on `sampled` alone, and holds until the next call. Throws Error("grammar-too-complex").
    const TokenMask & allowed(
        GrammarPosition & position, const std::vector<int32_t> & sampled, const TokenPieces & tokens);

   private:
    void read(GrammarPosition & position, int32_t token, const TokenPieces & tokens);
    TokenMask find_allowed(GrammarStates::State state, const TokenPieces & tokens);

    const size_t most_bytes_;
    const GrammarProgram program_;
    GrammarStates states_;
    uint64_t generation_ = 1;
    std::unordered_map<GrammarStates::State, TokenMask> masks_;
    std::vector<uint32_t> piece_of_;  // by token: its place among the pieces, plus 1
};

}  // namespace cria
