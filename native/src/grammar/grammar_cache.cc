#include "grammar/grammar_cache.h"

#include <algorithm>

#include "llama.h"

namespace cria {

TokenPieces list_token_pieces(const Model & model) {
    std::vector<std::string> pieces;
    std::vector<int32_t> ends;
    for (int32_t token = 0; token < llama_vocab_n_tokens(model.vocab()); token++) {
        pieces.push_back(model.piece(token, true));
        if (llama_vocab_is_eog(model.vocab(), token)) ends.push_back(token);
    }
    return TokenPieces(pieces, std::move(ends));
}

std::shared_ptr<Grammar> GrammarCache::find(const std::string & text) {
    {
        const Locked lock(mutex_);
        const auto known =
            std::find_if(entries_.begin(), entries_.end(), [&](const Entry & entry) { return entry.text == text; });
        if (known != entries_.end()) {
            entries_.splice(entries_.begin(), entries_, known);
            return entries_.front().grammar;
        }
    }
    const GrammarTokens tokens{[this](const std::string & token) { return model_.tokenize(token, true); },
        uint32_t(llama_vocab_n_tokens(model_.vocab()))};
    auto grammar = std::make_shared<Grammar>(text, tokens);
    const Locked lock(mutex_);
    entries_.push_front({text, grammar});
    if (entries_.size() > kKept) entries_.pop_back();
    return grammar;
}

}  // namespace cria
