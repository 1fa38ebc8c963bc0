// A grammar as a program over bytes. Where it stands is an instruction and the instructions to return to; what it can
// do next is found by running it without reading, along every way, up to instructions that read (grammar_states.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/gbnf.h"

namespace cria {

constexpr size_t kMostInstructions = size_t(1) << 18;

struct ByteEdge {
    uint8_t first, last;
    uint32_t next;
};

struct GrammarInstruction {
    enum class Kind : uint8_t {
        give_back,  // ends the rule
        read,  // one byte, by the edges [from, to)
        choose,  // goes on at each of the choices [from, to)
        call,  // runs the rule `from`, then goes on at `next`
        token,  // one whole token: `from`
        other_token,  // one whole token: any but `from`
    };
    Kind kind;
    uint32_t from = 0, to = 0, next = 0;
};

struct GrammarProgram {
    std::vector<GrammarInstruction> instructions;  // the first one gives back
    std::vector<ByteEdge> edges;
    std::vector<uint32_t> choices;
    std::vector<uint32_t> entries;  // of rules
    uint32_t root = 0;  // rule
};

// Throws Error("bad-grammar") for left recursion, and for repetitions that would make more than kMostInstructions.
GrammarProgram compile_grammar(const std::string & text, const GrammarTokens & tokens);

}  // namespace cria
