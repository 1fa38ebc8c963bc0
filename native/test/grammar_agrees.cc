// Compares the tokens that our grammars allow with those that llama.cpp's own sampler allows, along texts drawn from
// the allowed tokens. There are two deliberate differences. First, ours never allow bytes that cannot begin valid UTF-8
// (llama.cpp allows overlong characters, surrogates and bytes that begin no character). Second, after "any token but",
// parts of characters are ordinary tokens, so such grammars are compared only on whole characters. Arguments: a GGUF,
// the number of texts per grammar, and grammar files. Prints a line of JSON for each grammar: the first difference
// (empty: none), the number of compared places, and milliseconds per place: ours when new, ours when cached,
// llama.cpp's.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "ggml-backend.h"
#include "grammar/grammar.h"
#include "llama.h"

using namespace cria;

namespace {

std::string piece_of(const llama_vocab * vocab, int32_t token) {
    char text[1024];
    const int n = llama_token_to_piece(vocab, token, text, sizeof text, 0, true);
    return std::string(text, size_t(std::max(n, 0)));
}

double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Whether more bytes could make it valid UTF-8, and whether it is complete.
struct Utf8 {
    bool may_become = true, is_whole = true;
};

Utf8 check_utf8(const std::string & text) {
    for (size_t i = 0; i < text.size();) {
        const uint8_t lead = uint8_t(text[i]);
        const size_t length = lead < 0x80   ? 1
                              : lead < 0xc2 ? 0
                              : lead < 0xe0 ? 2
                              : lead < 0xf0 ? 3
                              : lead < 0xf5 ? 4
                                            : 0;
        if (length == 0) return {false, false};
        for (size_t k = 1; k < length; k++) {
            if (i + k >= text.size()) return {true, false};
            const uint8_t byte = uint8_t(text[i + k]);
            const uint8_t least = k > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
            const uint8_t most = k > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
            if (byte < least || byte > most) return {false, false};
        }
        i += length;
    }
    return {};
}

struct Compared {
    std::string difference;
    int places = 0;
    double cold = 0, warm = 0, theirs = 0;
};

Compared compare(const llama_vocab * vocab, const TokenPieces & pieces, const std::string & text, int texts) {
    const GrammarTokens tokens{[&](const std::string & name) {
        std::vector<int32_t> found(name.size() + 1);
        const int n =
            llama_tokenize(vocab, name.data(), int(name.size()), found.data(), int(found.size()), false, true);
        found.resize(size_t(std::max(n, 0)));
        return found;
    }, uint32_t(pieces.count())};
    Grammar ours(text, tokens);
    // A grammar whose cache is emptied all the time, used for another text in between.
    Grammar forgetful(text, tokens, 100000);
    GrammarPosition other_position;
    std::vector<int32_t> other;
    Compared compared;
    std::mt19937 random(7);
    std::vector<llama_token_data> row(size_t(pieces.count()));
    for (int t = 0; t < texts; t++) {
        const std::unique_ptr<llama_sampler, void (*)(llama_sampler *)> theirs(
            llama_sampler_init_grammar(vocab, text.c_str(), "root"), llama_sampler_free);
        GrammarPosition position, forgetful_position;
        std::vector<int32_t> sampled;
        std::string so_far;
        for (int i = 0; i < 60; i++) {
            const double begin = now();
            const TokenMask mask = ours.allowed(position, sampled, pieces);
            const double between = now();
            (void)ours.allowed(position, sampled, pieces);
            const double end = now();
            (void)forgetful.allowed(other_position, other, pieces);
            if (forgetful.allowed(forgetful_position, sampled, pieces).bits != mask.bits) {
                compared.difference = "after \"" + so_far + "\" once forgotten";
                return compared;
            }
            for (int32_t token = 0; token < pieces.count(); token++) row[size_t(token)] = {token, 0.0f, 0.0f};
            llama_token_data_array array{row.data(), row.size(), -1, false};
            const double their_begin = now();
            llama_sampler_apply(theirs.get(), &array);
            compared.theirs += now() - their_begin;
            compared.cold += between - begin;
            compared.warm += end - between;
            compared.places++;
            std::vector<int32_t> allowed;
            const bool any_token = text.find("!<") != std::string::npos;
            for (const llama_token_data & data : row) {
                const bool is_allowed =
                    pieces.is_end(data.id) ? mask.may_end : mask.bits[size_t(data.id) / 64] >> (data.id % 64) & 1;
                const std::string piece = piece_of(vocab, data.id);
                if (any_token && !check_utf8(piece).is_whole) continue;
                const bool expected = std::isfinite(data.logit) && check_utf8(so_far + piece).may_become;
                if (is_allowed != expected) {
                    compared.difference = "after \"" + so_far + "\" token " + std::to_string(data.id);
                    compared.difference += " \"" + piece + (is_allowed ? "\" is allowed" : "\" is not allowed");
                    return compared;
                }
                if (is_allowed && !pieces.is_end(data.id)) allowed.push_back(data.id);
            }
            if (allowed.empty()) break;
            const int32_t token = allowed[random() % allowed.size()];
            llama_sampler_accept(theirs.get(), token);
            sampled.push_back(token);
            so_far += piece_of(vocab, token);
        }
        other = sampled;
        other_position = {};
    }
    return compared;
}

std::string quote(const std::string & text) {
    std::string quoted = "\"";
    for (const char c : text) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", uint8_t(c));
        quoted += c == '"' || c == '\\' || uint8_t(c) < 32 || uint8_t(c) > 126 ? escaped : std::string(1, c);
    }
    return quoted + '"';
}

}  // namespace

int main(int argc, char ** argv) {
    if (argc < 4) return 2;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    const std::unique_ptr<llama_model, void (*)(llama_model *)> model(
        llama_model_load_from_file(argv[1], params), llama_model_free);
    if (!model) return 1;
    const llama_vocab * vocab = llama_model_get_vocab(model.get());
    std::vector<std::string> texts;
    std::vector<int32_t> ends;
    for (int32_t token = 0; token < llama_vocab_n_tokens(vocab); token++) {
        texts.push_back(piece_of(vocab, token));
        if (llama_vocab_is_eog(vocab, token)) ends.push_back(token);
    }
    const double begin = now();
    const TokenPieces pieces(texts, ends);
    std::fprintf(stderr, "%zu tokens sorted in %.1f ms\n", texts.size(), now() - begin);
    for (int i = 3; i < argc; i++) {
        std::stringstream grammar;
        grammar << std::ifstream(argv[i]).rdbuf();
        const Compared compared = compare(vocab, pieces, grammar.str(), std::atoi(argv[2]));
        std::printf("{\"difference\":%s,\"places\":%d,\"cold\":%.3f,\"warm\":%.4f,\"theirs\":%.3f}\n",
            quote(compared.difference).c_str(), compared.places, compared.cold / compared.places,
            compared.warm / compared.places, compared.theirs / compared.places);
    }
    return 0;
}
