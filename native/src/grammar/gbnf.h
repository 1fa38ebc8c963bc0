// Reads a grammar in llama.cpp's notation (GBNF): rules `name ::= alternatives`, literals, character classes, groups,
// repetitions, `<token>`; the whole text must match the rule `root`. Recursion is limited to kDeepestGroup, and sizes
// are limited, so that any text is read or refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cria/error.h"

namespace cria {

constexpr size_t kLongestGrammar = size_t(1) << 18;  // bytes
constexpr int kDeepestGroup = 200;
constexpr uint32_t kMostRepetitions = 100000;
constexpr uint32_t kUnbounded = UINT32_MAX;

struct CodePointRange {
    uint32_t first, last;
};
// Sorted, disjoint, without NUL and surrogates.
using CodePoints = std::vector<CodePointRange>;

// One element of a sequence, `least` to `most` times.
struct GrammarItem {
    enum class Kind { characters, rule, token, other_token };
    Kind kind;
    uint32_t value;  // index of the class, index of the rule, or the token; `other_token` is any token except this one
    uint32_t least = 1, most = 1;
};
using GrammarSequence = std::vector<GrammarItem>;

struct GrammarRule {
    std::string name;  // a group has the name of its enclosing rule
    std::vector<GrammarSequence> alternatives;
    bool is_defined = false;
    size_t position = 0;  // in the text, at the first use of the name
};

struct GrammarRules {
    std::vector<GrammarRule> rules;
    std::vector<CodePoints> classes;
    uint32_t root = 0;
};

// Tokenizer of `<text>`, and the number of tokens.
struct GrammarTokens {
    std::function<std::vector<int32_t>(const std::string &)> tokenize;
    uint32_t count = 0;
};

// Throws Error("bad-grammar") with line and column. Does not check for left recursion.
GrammarRules read_gbnf(const std::string & text, const GrammarTokens & tokens);

// An error at a place in the grammar's text.
Error grammar_error(const std::string & text, size_t position, const std::string & summary,
    const std::string & expected, const std::string & received);

}  // namespace cria
