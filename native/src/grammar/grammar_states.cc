#include "grammar/grammar_states.h"

#include <algorithm>
#include <map>

namespace cria {

namespace {

using Kind = GrammarInstruction::Kind;

Error too_complex() {
    return Error("grammar-too-complex", "has too many ways to read one text")
        .subject("generate.grammar")
        .expected("at most " + std::to_string(kMostWays) + " at once")
        .received("more")
        .remedy("write the grammar so that the next character tells which alternative it belongs to");
}

}  // namespace

GrammarStates::GrammarStates(const GrammarProgram & program) : program_(program) { clear(); }

void GrammarStates::clear() {
    nodes_.clear();
    known_.clear();
    links_.assign(1, {0, 0});
    seen_.assign(1, 0);
    search_ = 0;
    states_.clear();
    bytes_ = 0;
    intern({});  // kDead
}

size_t GrammarStates::HashWays::operator()(const std::vector<Node> & ways) const {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const Node way : ways) hash = (hash ^ way) * 0x100000001b3ull;
    return size_t(hash ^ hash >> 32);
}

GrammarStates::Node GrammarStates::node(uint32_t instruction, Node rest) {
    const auto [entry, is_new] = nodes_.emplace(uint64_t(instruction) << 32 | rest, Node(links_.size()));
    if (is_new) {
        links_.push_back({instruction, rest});
        seen_.push_back(0);
        bytes_ += 64;
    }
    return entry->second;
}

GrammarStates::State GrammarStates::start() {
    size_t cost = 0;
    return close({node(program_.entries[program_.root], 0)}, cost);
}

GrammarStates::State GrammarStates::close(const std::vector<Node> & from, size_t & cost) {
    if (++search_ == 0) {
        std::fill(seen_.begin(), seen_.end(), 0);
        search_ = 1;
    }
    std::vector<Node> ways, work;
    size_t seen = 0;
    const auto visit = [&](Node way) {
        if (seen_[way] == search_) return;
        if (++seen > kMostWays) throw too_complex();
        seen_[way] = search_;
        work.push_back(way);
    };
    for (const Node way : from) visit(way);
    while (!work.empty()) {
        const Node way = work.back();
        work.pop_back();
        if (way == 0) {  // the root rule returned
            ways.push_back(way);
            continue;
        }
        const auto [at, rest] = links_[way];
        const GrammarInstruction & instruction = program_.instructions[at];
        switch (instruction.kind) {
            case Kind::give_back:
                visit(rest);
                break;
            case Kind::choose:
                for (uint32_t i = instruction.from; i < instruction.to; i++) visit(node(program_.choices[i], rest));
                break;
            case Kind::call:
                // A tail call returns directly to its caller's return address, so that right recursion does not grow
                // the lists.
                visit(node(
                    program_.entries[instruction.from], instruction.next == 0 ? rest : node(instruction.next, rest)));
                break;
            default:
                ways.push_back(way);
        }
    }
    cost += seen;
    std::sort(ways.begin(), ways.end());
    return intern(std::move(ways));
}

GrammarStates::State GrammarStates::intern(std::vector<Node> ways) {
    const auto known = known_.find(ways);
    if (known != known_.end()) return known->second;
    bytes_ += 200 + 8 * ways.size();
    StateInfo state;
    state.ways = ways;
    state.may_end = !ways.empty() && ways.front() == 0;
    const State id = State(states_.size());
    states_.push_back(std::move(state));
    known_.emplace(std::move(ways), id);
    return id;
}

const GrammarStates::Row & GrammarStates::row(State state) {
    if (states_[state].row) return *states_[state].row;
    auto row = std::make_unique<Row>();
    row->fill(kDead);
    const std::vector<Node> ways = states_[state].ways;
    // Bytes between two borders have the same edges.
    std::array<bool, 257> border{};
    size_t cost = ways.size();
    const auto each_edge = [&](const auto & use) {
        for (const Node way : ways) {
            if (way == 0) continue;
            const auto [at, rest] = links_[way];
            const GrammarInstruction & instruction = program_.instructions[at];
            if (instruction.kind != Kind::read) continue;
            for (uint32_t e = instruction.from; e < instruction.to; e++) use(program_.edges[e], rest);
        }
    };
    each_edge([&](const ByteEdge & edge, Node) {
        cost++;
        border[edge.first] = border[size_t(edge.last) + 1] = true;
    });
    std::array<uint8_t, 256> part{};  // by byte: its interval between borders
    for (size_t byte = 1; byte < 256; byte++) part[byte] = uint8_t(part[byte - 1] + (border[byte] ? 1 : 0));
    std::vector<std::vector<Node>> targets(size_t(part[255]) + 1);
    each_edge([&](const ByteEdge & edge, Node rest) {
        const Node target = node(edge.next, rest);
        for (size_t p = part[edge.first]; p <= part[edge.last]; p++) {
            targets[p].push_back(target);
            if (++cost > kMostRowWork) throw too_complex();
        }
    });
    // Intervals with the same targets, such as the letters of a class that others split, are followed once.
    std::map<std::vector<Node>, State> followed;
    std::vector<State> states(targets.size(), kDead);
    for (size_t p = 0; p < targets.size(); p++) {
        if (targets[p].empty()) continue;
        const auto [entry, is_new] = followed.emplace(targets[p], kDead);
        if (is_new) entry->second = close(targets[p], cost);
        if (cost > kMostRowWork) throw too_complex();
        states[p] = entry->second;
    }
    for (size_t byte = 0; byte < 256; byte++) (*row)[byte] = states[part[byte]];
    bytes_ += sizeof(Row);
    states_[state].row_cost = cost;
    states_[state].row = std::move(row);
    return *states_[state].row;
}

std::vector<const GrammarInstruction *> GrammarStates::token_elements(State state) const {
    std::vector<const GrammarInstruction *> elements;
    for (const Node way : states_[state].ways) {
        if (way == 0) continue;
        const GrammarInstruction & instruction = program_.instructions[links_[way].instruction];
        if (instruction.kind == Kind::token || instruction.kind == Kind::other_token) elements.push_back(&instruction);
    }
    return elements;
}

GrammarStates::State GrammarStates::after_token(State state, uint32_t token) {
    std::vector<Node> targets;
    const std::vector<Node> ways = states_[state].ways;
    for (const Node way : ways) {
        if (way == 0) continue;
        const auto [at, rest] = links_[way];
        const GrammarInstruction & instruction = program_.instructions[at];
        if ((instruction.kind == Kind::token && instruction.from == token) ||
            (instruction.kind == Kind::other_token && instruction.from != token)) {
            targets.push_back(node(instruction.next, rest));
        }
    }
    size_t cost = 0;
    return targets.empty() ? kDead : close(targets, cost);
}

GrammarStates::State GrammarStates::join(State a, State b) {
    if (a == kDead || a == b) return b;
    if (b == kDead) return a;
    std::vector<Node> ways;
    std::set_union(states_[a].ways.begin(), states_[a].ways.end(), states_[b].ways.begin(), states_[b].ways.end(),
        std::back_inserter(ways));
    if (ways.size() > kMostWays) throw too_complex();
    return intern(std::move(ways));
}

}  // namespace cria
