// Recently used grammars, by their text: requests with the same grammar share its cached results.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "cria/model.h"
#include "cria/mutex.h"
#include "grammar/grammar.h"

namespace cria {

// The texts of the model's tokens for grammars: special tokens have their written form, as in llama.cpp.
TokenPieces list_token_pieces(const Model & model);

class GrammarCache {
   public:
    // Number of grammars kept in addition to those in use.
    static constexpr size_t kKept = 8;

    // The model must outlive this object.
    explicit GrammarCache(const Model & model) : model_(model) {}

    // Any thread. Throws Error("bad-grammar").
    std::shared_ptr<Grammar> find(const std::string & text) CRIA_EXCLUDES(mutex_);

   private:
    struct Entry {
        std::string text;
        std::shared_ptr<Grammar> grammar;
    };

    const Model & model_;
    Mutex mutex_;
    std::list<Entry> entries_ CRIA_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace cria
