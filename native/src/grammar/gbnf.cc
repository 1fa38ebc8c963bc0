#include "grammar/gbnf.h"

#include <algorithm>
#include <map>

namespace cria {

namespace {

constexpr uint32_t kLastCodePoint = 0x10ffff, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c); }

// Sorts and joins ranges, and removes code points that no text contains.
CodePoints normalize(CodePoints ranges, bool negated) {
    std::sort(ranges.begin(), ranges.end(), [](const auto & a, const auto & b) { return a.first < b.first; });
    CodePoints joined;
    for (const CodePointRange & range : ranges) {
        if (!joined.empty() && range.first <= joined.back().last + 1) {
            joined.back().last = std::max(joined.back().last, range.last);
        } else {
            joined.push_back(range);
        }
    }
    if (negated) {
        CodePoints rest;
        uint32_t next = 0;
        for (const CodePointRange & range : joined) {
            if (range.first > next) rest.push_back({next, range.first - 1});
            next = range.last + 1;
        }
        if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
        joined = std::move(rest);
    }
    CodePoints valid;
    const auto add = [&](uint32_t first, uint32_t last) {
        if (first <= last) valid.push_back({first, last});
    };
    for (const CodePointRange & range : joined) {
        add(std::max(range.first, 1u), std::min(range.last, kFirstSurrogate - 1));
        add(std::max(range.first, kLastSurrogate + 1), std::min(range.last, kLastCodePoint));
    }
    return valid;
}

class Reader {
   public:
    Reader(const std::string & text, const GrammarTokens & tokens) : text_(text), tokens_(tokens) {}

    GrammarRules read() {
        skip_space(true);
        while (at_ < text_.size()) read_rule();
        const auto root = names_.find("root");
        if (root == names_.end() || !grammar_.rules[root->second].is_defined) {
            throw grammar_error(text_, text_.size(), "has no rule named root", "a rule \"root ::= ...\"",
                names_.empty() ? "no rule" : "only other rules");
        }
        grammar_.root = root->second;
        for (const GrammarRule & rule : grammar_.rules) {
            if (!rule.is_defined) {
                throw grammar_error(text_, rule.position, "names a rule that does not exist",
                    "a rule \"" + rule.name + " ::= ...\"", "none");
            }
        }
        return std::move(grammar_);
    }

   private:
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    [[noreturn]] void refuse(const std::string & expected) const {
        std::string received = "the end";
        if (at_ < text_.size()) {
            // Includes the whole character: a part of one could not be shown.
            size_t end = at_ + 1;
            while (end < text_.size() && end < at_ + 4 && (uint8_t(text_[end]) & 0xc0) == 0x80) end++;
            received = '"' + text_.substr(at_, end - at_) + '"';
        }
        throw grammar_error(text_, at_, "cannot be read", expected, received);
    }

    void skip_space(bool newlines) {
        for (;; at_++) {
            const char c = peek();
            if (c == '#') {
                while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n' && text_[at_ + 1] != '\r') at_++;
            } else if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r'))) {
                return;
            }
        }
    }

    uint32_t rule_named(const std::string & name, size_t position) {
        const auto [entry, is_new] = names_.emplace(name, uint32_t(grammar_.rules.size()));
        if (is_new) grammar_.rules.push_back({name, {}, false, position});
        return entry->second;
    }

    uint32_t add_rule(const std::string & name, std::vector<GrammarSequence> alternatives, size_t position) {
        grammar_.rules.push_back({name, std::move(alternatives), true, position});
        return uint32_t(grammar_.rules.size() - 1);
    }

    std::string read_name() {
        const size_t from = at_;
        while (is_word(peek())) at_++;
        if (at_ == from) refuse("the name of a rule (letters, digits and \"-\")");
        return text_.substr(from, at_ - from);
    }

    void read_rule() {
        const size_t position = at_;
        const std::string name = read_name();
        const uint32_t rule = rule_named(name, position);
        skip_space(false);
        if (text_.compare(at_, 3, "::=") != 0) refuse("\"::=\"");
        at_ += 3;
        skip_space(true);
        auto alternatives = read_alternatives(name, 0);
        // If two rules have the same name, the later one is used, as in llama.cpp.
        grammar_.rules[rule].alternatives = std::move(alternatives);
        grammar_.rules[rule].is_defined = true;
        if (at_ < text_.size() && peek() != '\n' && peek() != '\r') refuse("an element of a rule, \"|\" or a new line");
        skip_space(true);
    }

    // NOLINTNEXTLINE(misc-no-recursion): kDeepestGroup
    std::vector<GrammarSequence> read_alternatives(const std::string & name, int depth) {
        if (depth > kDeepestGroup) refuse("groups nested at most " + std::to_string(kDeepestGroup) + " deep");
        std::vector<GrammarSequence> alternatives;
        alternatives.push_back(read_sequence(name, depth));
        while (peek() == '|') {
            at_++;
            skip_space(true);
            alternatives.push_back(read_sequence(name, depth));
        }
        return alternatives;
    }

    // NOLINTNEXTLINE(misc-no-recursion): kDeepestGroup
    GrammarSequence read_sequence(const std::string & name, int depth) {
        GrammarSequence sequence;
        size_t last = 0;  // begin of the element that a following repetition repeats
        for (;;) {
            const char c = peek();
            const size_t position = at_;
            if (c == '*' || c == '+' || c == '?' || c == '{') {
                if (last == sequence.size()) refuse("an element before \"" + std::string(1, c) + "\"");
                repeat(sequence, last, name);
                last = sequence.size() - 1;
                skip_space(depth > 0);
                continue;
            }
            const size_t begin = sequence.size();
            if (c == '"') {
                read_literal(sequence);
            } else if (c == '[') {
                sequence.push_back(read_class());
            } else if (c == '.') {
                at_++;
                sequence.push_back(characters({{0, kLastCodePoint}}, false));
            } else if (c == '<' || c == '!') {
                sequence.push_back(read_token());
            } else if (is_word(c)) {
                sequence.push_back({GrammarItem::Kind::rule, rule_named(read_name(), position)});
            } else if (c == '(') {
                at_++;
                skip_space(true);
                auto alternatives = read_alternatives(name, depth + 1);
                if (peek() != ')') refuse("\")\"");
                at_++;
                sequence.push_back({GrammarItem::Kind::rule, add_rule(name, std::move(alternatives), position)});
            } else {
                return sequence;
            }
            last = begin;
            skip_space(depth > 0);
        }
    }

    // Repeats the elements from `last` on. A literal of several characters becomes a separate rule, and so does a
    // repetition that is repeated.
    void repeat(GrammarSequence & sequence, size_t last, const std::string & name) {
        const size_t position = at_;
        uint32_t least = 0, most = kUnbounded;
        const char c = text_[at_++];
        if (c == '+') {
            least = 1;
        } else if (c == '?') {
            most = 1;
        } else if (c == '{') {
            skip_space(true);
            least = most = read_count();
            if (peek() == ',') {
                at_++;
                skip_space(true);
                most = is_digit(peek()) ? read_count() : kUnbounded;
            }
            if (peek() != '}') refuse("\",\" or \"}\"");
            at_++;
            if (most < least) {
                throw grammar_error(text_, position, "has a repetition whose end comes before its beginning",
                    "{least,most}", '{' + std::to_string(least) + ',' + std::to_string(most) + '}');
            }
        }
        if (sequence.size() - last > 1 || sequence[last].least != 1 || sequence[last].most != 1) {
            const GrammarSequence repeated(sequence.begin() + long(last), sequence.end());
            sequence.resize(last);
            sequence.push_back({GrammarItem::Kind::rule, add_rule(name, {repeated}, position)});
        }
        sequence[last].least = least;
        sequence[last].most = most;
    }

    uint32_t read_count() {
        if (!is_digit(peek())) refuse("a number");
        const size_t position = at_;
        uint32_t count = 0;
        for (; is_digit(peek()); at_++) {
            count = count * 10 + uint32_t(peek() - '0');
            if (count > kMostRepetitions) {
                at_ = position;
                refuse("at most " + std::to_string(kMostRepetitions) + " repetitions");
            }
        }
        skip_space(true);
        return count;
    }

    GrammarItem characters(CodePoints ranges, bool negated) {
        grammar_.classes.push_back(normalize(std::move(ranges), negated));
        return {GrammarItem::Kind::characters, uint32_t(grammar_.classes.size() - 1)};
    }

    void read_literal(GrammarSequence & sequence) {
        at_++;
        while (peek() != '"') {
            if (at_ >= text_.size()) refuse("the literal's closing quote");
            const uint32_t c = read_character();
            sequence.push_back(characters({{c, c}}, false));
        }
        at_++;
    }

    GrammarItem read_class() {
        at_++;
        const bool negated = peek() == '^';
        if (negated) at_++;
        CodePoints ranges;
        while (peek() != ']') {
            if (at_ >= text_.size()) refuse("the class's closing \"]\"");
            const size_t position = at_;
            const uint32_t first = read_character();
            uint32_t last = first;
            if (peek() == '-' && peek(1) != ']') {
                at_++;
                last = read_character();
            }
            if (last < first) {
                at_ = position;
                refuse("a range whose first character comes before its last");
            }
            ranges.push_back({first, last});
        }
        if (ranges.empty()) refuse("a character in the class");
        at_++;
        return characters(std::move(ranges), negated);
    }

    GrammarItem read_token() {
        const bool negated = peek() == '!';
        if (negated) at_++;
        if (peek() != '<') refuse("\"<\" and a token");
        const size_t position = at_, end = text_.find('>', at_);
        if (end == std::string::npos) refuse("a \">\" after the token");
        const std::string name = text_.substr(at_, end + 1 - at_);
        uint32_t token = tokens_.count;
        if (name.size() > 4 && name[1] == '[' && name[name.size() - 2] == ']') {
            const std::string digits = name.substr(2, name.size() - 4);
            const bool is_number = digits.size() <= 9 && std::all_of(digits.begin(), digits.end(), is_digit);
            if (is_number) token = uint32_t(std::stoul(digits));
        } else if (name.size() <= 1000) {
            const std::vector<int32_t> found = tokens_.tokenize(name);
            if (found.size() == 1) token = uint32_t(found[0]);
        }
        if (token >= tokens_.count) {
            at_ = position;
            refuse("a text that is one token, or <[id]> with an id below " + std::to_string(tokens_.count));
        }
        at_ = end + 1;
        return {negated ? GrammarItem::Kind::other_token : GrammarItem::Kind::token, token};
    }

    uint32_t read_character() {
        const uint8_t c = uint8_t(peek());
        if (at_ >= text_.size()) refuse("a character");
        if (c == '\\') return read_escape();
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t value = more == 0 ? c : c & (0x3fu >> more);
        at_++;
        for (int i = 0; i < more && (uint8_t(peek()) & 0xc0) == 0x80; i++)
            value = value << 6 | (uint8_t(text_[at_++]) & 0x3f);
        return std::min(value, kLastCodePoint);
    }

    uint32_t read_escape() {
        const char c = peek(1);
        const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (digits == 0) {
            const std::string known = "tnr\\\"[]-";
            if (c == '\0' || known.find(c) == std::string::npos) {
                refuse("one of the escapes \\t \\n \\r \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH");
            }
            at_ += 2;
            return c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : uint32_t(c);
        }
        uint64_t value = 0;
        for (int i = 0; i < digits; i++) {
            const char d = peek(size_t(i) + 2);
            const int digit = is_digit(d)            ? d - '0'
                              : d >= 'a' && d <= 'f' ? d - 'a' + 10
                              : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                     : -1;
            if (digit < 0) refuse(std::to_string(digits) + " hexadecimal digits after \\" + c);
            value = value * 16 + uint64_t(digit);
        }
        if (value > kLastCodePoint) refuse("a character up to \\U0010FFFF");
        at_ += size_t(2 + digits);
        return uint32_t(value);
    }

    const std::string & text_;
    const GrammarTokens & tokens_;
    size_t at_ = 0;
    GrammarRules grammar_;
    std::map<std::string, uint32_t> names_;
};

}  // namespace

Error grammar_error(const std::string & text, size_t position, const std::string & summary,
    const std::string & expected, const std::string & received) {
    const size_t end = std::min(position, text.size());
    const long line = 1 + std::count(text.begin(), text.begin() + long(end), '\n');
    const size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const size_t column = newline == std::string::npos ? end + 1 : end - newline;
    return Error("bad-grammar", summary)
        .subject("generate.grammar")
        .expected(expected)
        .received(received + " at line " + std::to_string(line) + ", column " + std::to_string(column))
        .remedy("correct the grammar there; llama.cpp's grammars/README.md describes the notation");
}

GrammarRules read_gbnf(const std::string & text, const GrammarTokens & tokens) {
    if (text.size() > kLongestGrammar) {
        throw Error("bad-grammar", "is too long")
            .subject("generate.grammar")
            .expected("at most " + std::to_string(kLongestGrammar) + " bytes")
            .received(std::to_string(text.size()) + " bytes")
            .remedy("move repeated parts into a rule, and refer to it");
    }
    return Reader(text, tokens).read();
}

}  // namespace cria
