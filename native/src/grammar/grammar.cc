#include "grammar/grammar.h"

#include <algorithm>

#include "cria/error.h"

namespace cria {

namespace {

using State = GrammarStates::State;

void set_bit(TokenMask & mask, int32_t token) {
    uint64_t & word = mask.bits[size_t(token) / 64];
    const uint64_t bit = uint64_t(1) << (token % 64);
    mask.count += (word & bit) ? 0 : 1;
    word |= bit;
}

Error too_complex() {
    return Error("grammar-too-complex", "needs too much work to find the allowed tokens")
        .subject("generate.grammar")
        .expected("at most " + std::to_string(kMostWork) + " ways to follow for one token")
        .received("more")
        .remedy("write the grammar so that the next character tells which alternative it belongs to");
}

}  // namespace

Grammar::Grammar(const std::string & text, const GrammarTokens & tokens, size_t most_bytes)
    : most_bytes_(most_bytes), program_(compile_grammar(text, tokens)), states_(program_) {}

const TokenMask & Grammar::allowed(
    GrammarPosition & position, const std::vector<int32_t> & sampled, const TokenPieces & tokens) {
    if (states_.bytes() + masks_.size() * size_t(tokens.count()) / 8 > most_bytes_) {
        states_.clear();
        masks_.clear();
        generation_++;
    }
    if (position.generation != generation_) position = {generation_, states_.start(), 0};
    for (; position.read < sampled.size(); position.read++) read(position, sampled[position.read], tokens);
    const auto known = masks_.find(position.state);
    if (known != masks_.end()) return known->second;
    return masks_[position.state] = find_allowed(position.state, tokens);
}

void Grammar::read(GrammarPosition & position, int32_t token, const TokenPieces & tokens) {
    if (piece_of_.empty()) {
        piece_of_.resize(size_t(tokens.count()));
        for (size_t i = 0; i < tokens.pieces().size(); i++)
            piece_of_[size_t(tokens.pieces()[i].token)] = uint32_t(i + 1);
    }
    const State whole = states_.after_token(position.state, uint32_t(token));
    State state = GrammarStates::kDead;
    if (const uint32_t at = piece_of_[size_t(token)]) {
        const TokenPiece & piece = tokens.pieces()[at - 1];
        state = position.state;
        for (uint32_t i = 0; i < piece.length && state != GrammarStates::kDead; i++) {
            state = states_.row(state)[tokens.bytes()[piece.begin + i]];
        }
    }
    position.state = states_.join(state, whole);
}

TokenMask Grammar::find_allowed(State from, const TokenPieces & tokens) {
    TokenMask mask;
    mask.bits.resize(size_t(tokens.count() + 63) / 64);
    mask.may_end = states_.may_end(from);
    // Rows of the states met here, by state. Their work is counted even if it was done earlier.
    std::vector<const GrammarStates::Row *> rows;
    size_t work = 0;
    const auto row_of = [&](State state) {
        if (state >= rows.size()) rows.resize(std::max(size_t(state) + 1, 2 * rows.size()));
        if (!rows[state]) {
            rows[state] = &states_.row(state);
            work += states_.row_cost(state);
            if (work > kMostWork) throw too_complex();
        }
        return rows[state];
    };
    std::vector<State> reached{from};  // after the first bytes of a piece
    size_t alive = 0;                  // bytes of the previous piece that could be read
    const auto & pieces = tokens.pieces();
    for (const TokenPiece & piece : pieces) {
        // The piece begins with bytes that could not be read.
        if (piece.shared > alive) continue;
        alive = piece.shared;
        const uint8_t * bytes = tokens.bytes() + piece.begin;
        if (reached.size() <= piece.length) reached.resize(piece.length + 1);
        while (alive < piece.length) {
            const State next = (*row_of(reached[alive]))[bytes[alive]];
            if (next == GrammarStates::kDead) break;
            reached[++alive] = next;
        }
        if (alive == piece.length) set_bit(mask, piece.token);
    }
    for (const GrammarInstruction * element : states_.token_elements(from)) {
        if (element->kind == GrammarInstruction::Kind::token) {
            if (!tokens.is_end(int32_t(element->from))) set_bit(mask, int32_t(element->from));
            continue;
        }
        for (const TokenPiece & piece : pieces) {
            if (uint32_t(piece.token) != element->from) set_bit(mask, piece.token);
        }
    }
    return mask;
}

}  // namespace cria
