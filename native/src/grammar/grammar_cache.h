// The grammars of late, by their text: requests of one kind share what was found about theirs.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "cria/model.h"
#include "cria/mutex.h"
#include "grammar/grammar.h"

namespace cria {

// The texts of the model's tokens as grammars see them: special tokens with the text that stands for them, as in
// llama.cpp.
TokenPieces list_token_pieces(const Model & model);

class GrammarCache {
   public:
    // Grammars kept beside those in use.
    static constexpr size_t kKept = 8;

    // The model must outlive it.
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
    std::list<Entry> entries_ CRIA_GUARDED_BY(mutex_);  // the last one used first
};

}  // namespace cria
