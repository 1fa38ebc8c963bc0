// A grammar, and the tokens of a vocabulary that it allows at each place. Compiled on any thread; then used only by the
// scheduler's thread.
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

// Maximum number of ways followed to find the allowed tokens at one place. It bounds the time that other sequences wait
// for it.
constexpr size_t kMostWork = 1000000;
// Approximate maximum size of a grammar's cached results. Beyond it the cache is emptied and results are computed
// again, with the same outcome.
constexpr size_t kMostGrammarBytes = size_t(32) << 20;

struct TokenMask {
    std::vector<uint64_t> bits;  // by token, without those that end the generation
    size_t count = 0;
    bool may_end = false;
};

// Position of one request in the grammar.
struct GrammarPosition {
    uint64_t generation = 0;  // of the states; if it differs, the state is found again from the tokens
    GrammarStates::State state = 0;
    size_t read = 0;  // number of tokens read
};

class Grammar {
   public:
    // Throws Error("bad-grammar").
    Grammar(const std::string & text, const GrammarTokens & tokens, size_t most_bytes = kMostGrammarBytes);

    // The tokens that may follow `sampled`, all of which the grammar allowed. The position must be the request's own.
    // The answer depends only on `sampled`, and is valid until the next call. Throws Error("grammar-too-complex").
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
    std::vector<uint32_t> piece_of_;  // by token: its index among the pieces, plus 1
};

}  // namespace cria
