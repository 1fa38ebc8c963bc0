#include "infer/kv_slots.h"

#include <algorithm>

#include "llama.h"

namespace cria {

int KvSlots::find_longest_prefix(const std::vector<int32_t> & tokens, size_t most, SequenceId family, size_t & length) const {
    int best = -1;
    length = 0;
    for (size_t i = 0; i < slots_.size(); i++) {
        if (family != 0 && slots_[i].family != family) continue;
        const auto & held = slots_[i].tokens;
        const size_t limit = std::min({held.size(), tokens.size(), most});
        size_t n = 0;
        while (n < limit && held[n] == tokens[n]) n++;
        // Among equals a free slot is better: it needs no copy.
        if (n > length || (n == length && n > 0 && best >= 0 && slots_[i].owner == 0 && slots_[size_t(best)].owner != 0)) {
            best = int(i);
            length = n;
        }
    }
    return best;
}

int KvSlots::find_free() const {
    int oldest = -1;
    for (size_t i = 0; i < slots_.size(); i++) {
        if (slots_[i].owner != 0) continue;
        if (slots_[i].tokens.empty()) return int(i);
        if (oldest < 0 || slots_[i].last_use < slots_[size_t(oldest)].last_use) oldest = int(i);
    }
    return oldest;
}

void KvSlots::trim(int slot, size_t length) {
    llama_memory_seq_rm(llama_get_memory(context_), slot, llama_pos(length), -1);
    if (slots_[size_t(slot)].tokens.size() > length) slots_[size_t(slot)].tokens.resize(length);
}

void KvSlots::copy(int from, int to, size_t length) {
    llama_memory_t memory = llama_get_memory(context_);
    llama_memory_seq_rm(memory, to, -1, -1);
    llama_memory_seq_cp(memory, from, to, -1, -1);
    slots_[size_t(to)].tokens = slots_[size_t(from)].tokens;
    trim(to, length);
}

void KvSlots::clear_all() {
    llama_memory_clear(llama_get_memory(context_), false);
    for (auto & slot : slots_) slot.tokens.clear();
}

std::vector<uint8_t> KvSlots::save(int slot) const {
    std::vector<uint8_t> state(llama_state_seq_get_size(context_, slot));
    state.resize(llama_state_seq_get_data(context_, state.data(), state.size(), slot));
    return state;
}

bool KvSlots::restore(int slot, const std::vector<uint8_t> & state, const std::vector<int32_t> & tokens) {
    llama_memory_seq_rm(llama_get_memory(context_), slot, -1, -1);
    slots_[size_t(slot)].tokens.clear();
    if (llama_state_seq_set_data(context_, state.data(), state.size(), slot) == 0) {
        llama_memory_seq_rm(llama_get_memory(context_), slot, -1, -1);
        return false;
    }
    slots_[size_t(slot)].tokens = tokens;
    return true;
}

}  // namespace cria
