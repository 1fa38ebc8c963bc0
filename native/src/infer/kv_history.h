// The versions of the weights that evaluated keys and values: one, or several where a version took over a sequence of
// another one with its KV (PipelineRL, arXiv:2509.19128, in-flight weight updates).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cria/policy_version.h"

namespace cria {

// Equal keys and equal tokens: equal KV. A version, or the number of a history of several.
using KvKey = uint64_t;

// Versions are few, and the live one has all bits.
constexpr KvKey kFirstHistory = KvKey(1) << 63;

constexpr bool is_history(KvKey key) { return key >= kFirstHistory && key != kLivePolicy; }

// The versions that evaluated a sequence's tokens before its present one.
struct KvHistory {
    struct Part {
        size_t end;  // of its tokens, which begin at the end of the part before
        PolicyVersion version;
    };

    KvKey key;
    std::vector<Part> parts;  // not empty, by rising end
};

}  // namespace cria
