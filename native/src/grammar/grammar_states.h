// Where a grammar can stand, found as texts are tried: a state is the set of all ways that the program can have taken,
// each an instruction that reads and the instructions to return to (a list that shares its tail with others). A state's
// row says which state each byte leads to. States, rows and lists are kept until clear(), so that what comes again
// costs a look-up. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/grammar_program.h"

namespace cria {

// Most ways in one state. Grammars that double their ways with each character come here; natural ones have some dozens.
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

    // Before anything was read. Throws, as all that finds states, Error("grammar-too-complex").
    State start();
    const Row & row(State state);
    // How many ways were followed to find a state's row: depends on the state alone, not on what is kept already.
    size_t row_cost(State state) const { return states_[state].row_cost; }
    // After elements of the grammar that read the token as a whole.
    State after_token(State state, uint32_t token);
    State join(State a, State b);
    bool may_end(State state) const { return states_[state].may_end; }
    // The elements that read a whole token at this state.
    std::vector<const GrammarInstruction *> token_elements(State state) const;

    // About.
    size_t bytes() const { return bytes_; }
    void clear();

   private:
    // A list of instructions to return to, or a way: an instruction, and the list behind it. 0 is the empty list.
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
    // The state of all ways that reach a reading instruction from these without reading.
    State close(const std::vector<Node> & from, size_t & cost);
    State intern(std::vector<Node> ways);

    const GrammarProgram & program_;
    std::vector<Link> links_;
    std::unordered_map<uint64_t, Node> nodes_;
    std::vector<StateInfo> states_;
    std::unordered_map<std::vector<Node>, State, HashWays> known_;
    std::vector<uint32_t> seen_;  // by node: the search that last saw it
    uint32_t search_ = 0;
    size_t bytes_ = 0;
};

}  // namespace cria
