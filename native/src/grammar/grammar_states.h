// The states of a grammar, found as texts are tried. A state is the set of all ways that the program can have taken;
// each way is a reading instruction and the instructions to return to (a list that shares its tail with others). A
// state's row gives the next state for each byte. States, rows and lists are kept until clear(), so that repeated text
// only costs a look-up. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/grammar_program.h"

namespace cria {

// Most ways in one state. Grammars that double their ways with each character reach this limit; natural ones have a few
// dozen.
constexpr size_t kMostWays = 20000;
// Most ways followed from one state, over all bytes.
constexpr size_t kMostRowWork = 1000000;

class GrammarStates {
   public:
    using State = uint32_t;
    using Row = std::array<State, 256>;
    static constexpr State kDead = 0;

    // The program must outlive it.
    explicit GrammarStates(const GrammarProgram & program);

    // The state before anything was read. Throws Error("grammar-too-complex"), as all functions that find states do.
    State start();
    const Row & row(State state);
    // Number of ways followed to find a state's row. Depends only on the state, not on the cached rows.
    size_t row_cost(State state) const { return states_[state].row_cost; }
    // The state after an element of the grammar has read the token as a whole.
    State after_token(State state, uint32_t token);
    State join(State a, State b);
    bool may_end(State state) const { return states_[state].may_end; }
    // The elements that read a whole token at this state.
    std::vector<const GrammarInstruction *> token_elements(State state) const;

    // Approximate size.
    size_t bytes() const { return bytes_; }
    void clear();

   private:
    // A list of instructions to return to, or a way: an instruction followed by such a list. 0 is the empty list.
    using Node = uint32_t;
    struct Link {
        uint32_t instruction;
        Node rest;
    };
    struct StateInfo {
        std::vector<Node> ways;  // sorted; the empty list first, where the grammar may end
        bool may_end = false;
        std::unique_ptr<Row> row;
        size_t row_cost = 0;
    };
    struct HashWays {
        size_t operator()(const std::vector<Node> & ways) const;
    };

    Node node(uint32_t instruction, Node rest);
    // The state of all ways that reach a reading instruction from these ways without reading.
    State close(const std::vector<Node> & from, size_t & cost);
    State intern(std::vector<Node> ways);

    const GrammarProgram & program_;
    std::vector<Link> links_;
    std::unordered_map<uint64_t, Node> nodes_;
    std::vector<StateInfo> states_;
    std::unordered_map<std::vector<Node>, State, HashWays> known_;
    std::vector<uint32_t> seen_;  // by node: the last search that visited it
    uint32_t search_ = 0;
    size_t bytes_ = 0;
};

}  // namespace cria
