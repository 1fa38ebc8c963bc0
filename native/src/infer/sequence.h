// A sequence of tokens, and the request that continues it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cria/policy_version.h"
#include "cria/scheduler.h"
#include "grammar/grammar.h"
#include "infer/kv_history.h"
#include "infer/kv_slots.h"
#include "infer/text_stream.h"

namespace cria {

using Clock = std::chrono::steady_clock;

struct Request {
    RequestId id;
    GenerateParams params;
    std::function<void(GenerateResult)> done;
    std::function<void(std::string)> on_text;
    std::atomic<bool> aborted{false};
    Clock::time_point submitted, admitted, decoding;
    bool is_admitted = false, is_decoding = false;
    GenerateResult result;
    TextStream stream{{}};
    std::shared_ptr<Grammar> grammar;  // may be null
    GrammarPosition grammar_position;
};

struct Sequence {
    SequenceId id;
    PolicyVersion version = kLivePolicy;  // that evaluates and samples it from here on
    std::shared_ptr<const KvHistory> history;  // null: it has evaluated all tokens; shared by forks
    std::vector<int32_t> tokens;
    int slot = -1;
    std::unique_ptr<Request> request;
    bool disposed = false;
    // Forks share their family's KV up to the tokens that they were forked with.
    SequenceId family = 0;
    size_t fork_length = 0;
    // Logits after the last token, when it was evaluated without sampling from it; shared by forks.
    std::shared_ptr<std::vector<float>> next_logits;
    // KV saved outside the cache when the sequence was evicted.
    SavedKv saved;

    KvKey kv_key() const { return history ? history->key : version; }
    // The version that evaluates the token at a place, and the end of the tokens that it evaluates.
    KvHistory::Part part_at(size_t place) const {
        if (history) {
            for (const auto & part : history->parts) {
                if (place < part.end) return part;
            }
        }
        return {SIZE_MAX, version};
    }
    bool uses(PolicyVersion other) const {
        if (other == version) return true;
        if (!history) return false;
        const auto & parts = history->parts;
        return std::any_of(parts.begin(), parts.end(), [&](const auto & part) { return part.version == other; });
    }
};

}  // namespace cria
