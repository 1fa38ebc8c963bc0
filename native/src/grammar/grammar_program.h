// A grammar as a program over bytes. A position in it is an instruction and the instructions to return to. The possible
// next steps are found by running the program along every way, without reading, up to the instructions that read
// (grammar_states.h).
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
        give_back,  // ends the rule and returns
        read,  // reads one byte, by the edges [from, to)
        choose,  // continues at each of the choices [from, to)
        call,  // runs the rule `from`, then continues at `next`
        token,  // reads one whole token: `from`
        other_token,  // reads one whole token: any except `from`
    };
    Kind kind;
    uint32_t from = 0, to = 0, next = 0;
};

struct GrammarProgram {
    std::vector<GrammarInstruction> instructions;  // the first one is give_back
    std::vector<ByteEdge> edges;
    std::vector<uint32_t> choices;
    std::vector<uint32_t> entries;  // by rule
    uint32_t root = 0;  // index of the rule
};

// Throws Error("bad-grammar") for left recursion, and for repetitions that need more than kMostInstructions.
GrammarProgram compile_grammar(const std::string & text, const GrammarTokens & tokens);

}  // namespace cria
