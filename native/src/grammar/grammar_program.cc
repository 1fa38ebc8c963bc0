#include "grammar/grammar_program.h"

#include <algorithm>
#include <map>

namespace cria {

namespace {

using Kind = GrammarInstruction::Kind;

// Finds the rules that match the empty text: those with a sequence in which every element matches it.
std::vector<bool> find_nullable(const GrammarRules & grammar) {
    struct Sequence {
        uint32_t rule;
        size_t left;  // number of elements not yet known to match the empty text
    };
    std::vector<Sequence> sequences;
    // by rule: the sequences that use it, once for each element
    std::vector<std::vector<size_t>> users(grammar.rules.size());
    std::vector<bool> nullable(grammar.rules.size());
    std::vector<uint32_t> found;
    const auto find = [&](uint32_t rule) {
        if (!nullable[rule]) found.push_back(rule);
        nullable[rule] = true;
    };
    for (uint32_t r = 0; r < grammar.rules.size(); r++) {
        for (const GrammarSequence & sequence : grammar.rules[r].alternatives) {
            sequences.push_back({r, 0});
            for (const GrammarItem & item : sequence) {
                if (item.least == 0) continue;
                sequences.back().left++;
                if (item.kind == GrammarItem::Kind::rule) users[item.value].push_back(sequences.size() - 1);
            }
            if (sequences.back().left == 0) find(r);
        }
    }
    while (!found.empty()) {
        const uint32_t rule = found.back();
        found.pop_back();
        for (const size_t user : users[rule]) {
            if (--sequences[user].left == 0) find(sequences[user].rule);
        }
    }
    return nullable;
}

// Refuses left recursion: a rule that reaches itself before reading anything would run without end.
void refuse_left_recursion(const std::string & text, const GrammarRules & grammar) {
    const std::vector<bool> nullable = find_nullable(grammar);
    const size_t n = grammar.rules.size();
    std::vector<std::vector<uint32_t>> first(n);  // rules that a rule may begin with
    for (size_t r = 0; r < n; r++) {
        for (const GrammarSequence & sequence : grammar.rules[r].alternatives) {
            for (const GrammarItem & item : sequence) {
                const bool is_rule = item.kind == GrammarItem::Kind::rule;
                if (is_rule && item.most > 0) first[r].push_back(item.value);
                if (item.least > 0 && !(is_rule && nullable[item.value])) break;
            }
        }
    }
    enum class Mark : uint8_t { fresh, open, done };
    std::vector<Mark> marks(n, Mark::fresh);
    struct Frame {
        uint32_t rule;
        size_t next;
    };
    for (uint32_t start = 0; start < n; start++) {
        if (marks[start] != Mark::fresh) continue;
        std::vector<Frame> frames{{start, 0}};
        marks[start] = Mark::open;
        while (!frames.empty()) {
            Frame & frame = frames.back();
            if (frame.next == first[frame.rule].size()) {
                marks[frame.rule] = Mark::done;
                frames.pop_back();
                continue;
            }
            const uint32_t rule = first[frame.rule][frame.next++];
            if (marks[rule] == Mark::open) {
                const GrammarRule & found = grammar.rules[rule];
                throw grammar_error(text, found.position, "has a rule that begins with itself",
                    "something to read before a rule names itself", "left recursion of \"" + found.name + '"');
            }
            if (marks[rule] == Mark::done) continue;
            marks[rule] = Mark::open;
            frames.push_back({rule, 0});
        }
    }
}

struct ByteRange {
    uint8_t first, last;
    bool operator<(const ByteRange & other) const {
        return first != other.first ? first < other.first : last < other.last;
    }
};
using ByteSequence = std::vector<ByteRange>;

// Converts code points [first, last], all of one encoded length, to sequences of byte ranges. `tail`: bytes after the
// first.
// NOLINTNEXTLINE(misc-no-recursion): at most four bytes deep
void split_range(uint32_t first, uint32_t last, int tail, std::vector<ByteSequence> & out) {
    static constexpr uint8_t kLead[] = {0x00, 0xc0, 0xe0, 0xf0};
    for (int i = tail; i > 0; i--) {
        // Only whole blocks of the last i bytes; the remainders on either side are handled separately.
        const uint32_t mask = (1u << (6 * i)) - 1;
        if ((first & ~mask) == (last & ~mask)) continue;
        if ((first & mask) != 0) {
            split_range(first, first | mask, tail, out);
            return split_range((first | mask) + 1, last, tail, out);
        }
        if ((last & mask) != mask) {
            split_range(first, (last & ~mask) - 1, tail, out);
            return split_range(last & ~mask, last, tail, out);
        }
    }
    ByteSequence sequence;
    for (int i = tail; i >= 0; i--) {
        const auto byte = [&](uint32_t value) {
            return i == tail ? uint8_t(kLead[tail] | value >> (6 * i)) : uint8_t(0x80 | (value >> (6 * i) & 0x3f));
        };
        sequence.push_back({byte(first), byte(last)});
    }
    out.push_back(std::move(sequence));
}

std::vector<ByteSequence> to_utf8(const CodePoints & points) {
    static constexpr uint32_t kLast[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    std::vector<ByteSequence> sequences;
    for (const CodePointRange & range : points) {
        uint32_t first = range.first;
        for (int tail = 0; tail < 4 && first <= range.last; tail++) {
            if (first > kLast[tail]) continue;
            split_range(first, std::min(range.last, kLast[tail]), tail, sequences);
            first = kLast[tail] + 1;
        }
    }
    return sequences;
}

class Compiler {
   public:
    Compiler(const std::string & text, const GrammarRules & grammar) : text_(text), grammar_(grammar) {
        add({Kind::give_back});
        for (const CodePoints & points : grammar.classes) classes_.push_back(to_utf8(points));
    }

    GrammarProgram compile() {
        for (const GrammarRule & rule : grammar_.rules) {
            position_ = rule.position;
            std::vector<uint32_t> entries;
            for (const GrammarSequence & sequence : rule.alternatives) {
                uint32_t next = 0;
                for (size_t i = sequence.size(); i > 0; i--) next = repeat(sequence[i - 1], next);
                entries.push_back(next);
            }
            program_.entries.push_back(entries.size() == 1 ? entries[0] : choose(entries));
        }
        program_.root = grammar_.root;
        return std::move(program_);
    }

   private:
    uint32_t add(const GrammarInstruction & instruction) {
        if (program_.instructions.size() + program_.edges.size() >= kMostInstructions) {
            throw grammar_error(text_, position_, "is too large once its repetitions are written out",
                "at most " + std::to_string(kMostInstructions) + " steps", "more, by the rule");
        }
        program_.instructions.push_back(instruction);
        return uint32_t(program_.instructions.size() - 1);
    }

    uint32_t choose(const std::vector<uint32_t> & targets) {
        const uint32_t from = uint32_t(program_.choices.size());
        program_.choices.insert(program_.choices.end(), targets.begin(), targets.end());
        return add({Kind::choose, from, uint32_t(program_.choices.size())});
    }

    // Instructions are generated from the last one to the first, so that each knows its successor.
    uint32_t repeat(const GrammarItem & item, uint32_t next) {
        if (item.most == kUnbounded) {
            const uint32_t loop = choose({0, next});
            const uint32_t body = once(item, loop);
            program_.choices[program_.instructions[loop].from] = body;
            next = loop;
        } else {
            const uint32_t end = next;
            for (uint32_t i = item.least; i < item.most; i++) next = choose({once(item, next), end});
        }
        for (uint32_t i = 0; i < item.least; i++) next = once(item, next);
        return next;
    }

    uint32_t once(const GrammarItem & item, uint32_t next) {
        switch (item.kind) {
            case GrammarItem::Kind::rule:
                return add({Kind::call, item.value, 0, next});
            case GrammarItem::Kind::token:
                return add({Kind::token, item.value, 0, next});
            case GrammarItem::Kind::other_token:
                return add({Kind::other_token, item.value, 0, next});
            case GrammarItem::Kind::characters:
                break;
        }
        tails_.clear();
        return read(classes_[item.value], next);
    }

    // Sequences with the same beginning share their first instruction, those with the same rest share the rest.
    // NOLINTNEXTLINE(misc-no-recursion): at most four bytes deep
    uint32_t read(const std::vector<ByteSequence> & sequences, uint32_t next) {
        const auto known = tails_.find(sequences);
        if (known != tails_.end()) return known->second;
        std::vector<ByteEdge> edges;
        for (size_t i = 0; i < sequences.size();) {
            const ByteRange range = sequences[i][0];
            std::vector<ByteSequence> rest;
            size_t end = i;
            for (; end < sequences.size() && sequences[end][0].first == range.first; end++) {
                if (sequences[end].size() > 1) rest.emplace_back(sequences[end].begin() + 1, sequences[end].end());
            }
            edges.push_back({range.first, range.last, rest.empty() ? next : read(rest, next)});
            i = end;
        }
        const uint32_t from = uint32_t(program_.edges.size());
        program_.edges.insert(program_.edges.end(), edges.begin(), edges.end());
        const uint32_t instruction = add({Kind::read, from, uint32_t(program_.edges.size())});
        tails_[sequences] = instruction;
        return instruction;
    }

    const std::string & text_;
    const GrammarRules & grammar_;
    GrammarProgram program_;
    std::vector<std::vector<ByteSequence>> classes_;
    std::map<std::vector<ByteSequence>, uint32_t> tails_;  // sequences of the class being compiled
    size_t position_ = 0;
};

}  // namespace

GrammarProgram compile_grammar(const std::string & text, const GrammarTokens & tokens) {
    const GrammarRules grammar = read_gbnf(text, tokens);
    refuse_left_recursion(text, grammar);
    return Compiler(text, grammar).compile();
}

}  // namespace cria
