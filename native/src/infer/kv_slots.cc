#include "infer/kv_slots.h"

#include <algorithm>
#include <stdexcept>

#include "llama-memory.h"
#include "llama.h"

namespace cria {

KvSlots::KvSlots(llama_context * context, int count, PrefixSharing sharing, const PrefillCuts & cuts,
    const TokenPlaces & places, bool rewinds)
    : context_(context), sharing_(sharing), cuts_(cuts), places_(places), rewinds_(rewinds), slots_(size_t(count)),
      rows_(context) {}

KvSlots::Trees & KvSlots::trees_of(int slot) {
    return trees_.try_emplace(slots_[size_t(slot)].key, count()).first->second;
}

const KvSlots::Trees * KvSlots::find_trees(KvKey key) const {
    const auto found = trees_.find(key);
    return found == trees_.end() ? nullptr : &found->second;
}

void KvSlots::change_key(int slot, KvKey key) {
    const KvKey before = slots_[size_t(slot)].key;
    slots_[size_t(slot)].key = key;
    const auto has = [before](const KvSlot & s) { return s.key == before; };
    // Each history is new, so nothing else would drop its trees.
    if (is_history(before) && std::none_of(slots_.begin(), slots_.end(), has)) trees_.erase(before);
}

void KvSlots::set_key(int slot, KvKey key) {
    if (slots_[size_t(slot)].key == key) return;
    trim(slot, 0);
    unpromise(slot);
    change_key(slot, key);
}

void KvSlots::begin_history(int slot, KvKey key, size_t length) {
    KvSlot & s = slots_[size_t(slot)];
    trees_of(slot).resident.truncate(slot, 0);
    unpromise(slot);
    change_key(slot, key);
    s.prompt_end = {};
    // Chunks may be shared once they are evaluated again.
    if (sharing_ == PrefixSharing::tokens)
        trees_of(slot).resident.append(slot, s.tokens.data(), std::min(length, s.tokens.size()));
}

PrefixMatch KvSlots::find_prefix(const std::vector<int32_t> & tokens, KvKey key) const {
    const Trees * trees = find_trees(key);
    if (sharing_ == PrefixSharing::family || !trees) return {};
    PrefixMatch match = trees->resident.find(tokens.data(), tokens.size());
    if (sharing_ != PrefixSharing::chunks) return match;
    // The last token is evaluated in the same chunk as in a fresh evaluation.
    const size_t most = std::min(match.length, tokens.size() - 1);
    PrefixMatch allowed;
    for (const int holder : match.holders) {
        const size_t length =
            cuts_.last_common(tokens, slots_[size_t(holder)].tokens, trees->resident.length(holder), most);
        if (length == 0 || length < allowed.length) continue;
        if (length > allowed.length) allowed = {length, {}};
        allowed.holders.push_back(holder);
    }
    return allowed;
}

size_t KvSlots::find_promised(const std::vector<int32_t> & tokens, KvKey key) const {
    const Trees * trees = find_trees(key);
    if (sharing_ == PrefixSharing::family || !trees) return 0;
    const size_t length = trees->promised.find(tokens.data(), tokens.size()).length;
    if (sharing_ != PrefixSharing::chunks) return length;
    return cuts_.last_whole(tokens, std::min(length, tokens.size() - 1));
}

PrefixMatch KvSlots::find_in_family(const std::vector<int32_t> & tokens, size_t most, SequenceId family) const {
    PrefixMatch best;
    for (size_t i = 0; i < slots_.size(); i++) {
        if (slots_[i].family != family) continue;
        const auto & held = slots_[i].tokens;
        const size_t limit = std::min({held.size(), tokens.size(), most});
        size_t n = 0;
        while (n < limit && held[n] == tokens[n]) n++;
        if (n == 0 || n < best.length || (!rewinds_ && n < held.size())) continue;
        if (n > best.length) best = {n, {}};
        best.holders.push_back(int(i));
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

void KvSlots::promise(int slot, const std::vector<int32_t> & tokens) {
    unpromise(slot);
    const size_t held = slots_[size_t(slot)].tokens.size();
    size_t count = tokens.size();
    if (sharing_ == PrefixSharing::chunks)
        count = trees_of(slot).resident.length(slot) == held && cuts_.last_whole(tokens, held) == held
                    ? cuts_.last_whole(tokens, count)
                    : 0;
    if (sharing_ != PrefixSharing::family) trees_of(slot).promised.append(slot, tokens.data(), count);
}

void KvSlots::append(int slot, const int32_t * tokens, size_t count, bool whole) {
    KvSlot & s = slots_[size_t(slot)];
    auto & held = s.tokens;
    const size_t before = held.size();
    for (size_t i = 0; i < count; i++) {
        places_.advance(held.empty() ? -1 : held.back(), tokens[i], s.next_position);
        held.push_back(tokens[i]);
    }
    // Whether the tokens form a chunk that begins at a cut of a fresh evaluation.
    const auto is_chunk = [&] {
        return whole && before == trees_of(slot).resident.length(slot) && cuts_.last_whole(held, before) == before;
    };
    if (sharing_ == PrefixSharing::tokens || (sharing_ == PrefixSharing::chunks && is_chunk()))
        trees_of(slot).resident.append(slot, tokens, count);
}

bool KvSlots::remove_cells(int slot, int32_t from) {
    return llama_memory_seq_rm(llama_get_memory(context_), slot, from, -1);
}

void KvSlots::remove_all_cells(int slot) {
    if (!remove_cells(slot, 0)) throw std::logic_error("the cells of a slot cannot be removed");
}

void KvSlots::trim(int slot, size_t length) {
    KvSlot & s = slots_[size_t(slot)];
    if (s.tokens.size() > length) {
        length = rewinds_ ? cuts_.last_cut(s.tokens, length) : 0;
        s.tokens.resize(length);
        s.next_position = places_.behind(s.tokens.data(), length);
    }
    if (!remove_cells(slot, s.next_position)) {
        // The cells hold more than `tokens` says. Without the cells the tokens are evaluated again.
        remove_all_cells(slot);
        s.tokens.clear();
        s.next_position = 0;
        length = 0;
    }
    if (s.prompt_end.length > length) s.prompt_end = {};
    trees_of(slot).resident.truncate(slot, length);
}

void KvSlots::remove_failed(int slot) {
    const size_t length = slots_[size_t(slot)].tokens.size();
    // Parts of the batch may have been evaluated before the failure.
    if (!rewinds_) return trim(slot, 0);
    trim(slot, cuts_.keeps_runs && length > 0 ? length - 1 : length);
}

// llama.cpp would copy whole streams at its next decode. That is too late, because until then a state may be restored
// into either slot. So this updates llama.cpp's record of the cells, and takes its queued copies, to do or replace them
// now.
std::unique_ptr<llama_memory_context_i> KvSlots::copy_cells(int from, int to) {
    llama_memory_t memory = llama_get_memory(context_);
    llama_memory_seq_cp(memory, from, to, -1, -1);
    return memory->init_update(context_, false);
}

void KvSlots::copy(int from, int to, size_t length) {
    trim(to, 0);
    const auto queued = copy_cells(from, to);
    if (rows_.can_copy()) {
        rows_.copy(from, to, length);
    } else if (queued && queued->get_status() == LLAMA_MEMORY_STATUS_SUCCESS) {
        queued->apply();
    }
    const KvSlot & source = slots_[size_t(from)];
    slots_[size_t(to)].tokens = source.tokens;
    slots_[size_t(to)].next_position = source.next_position;
    slots_[size_t(to)].prompt_end = source.prompt_end;
    PrefixTree & resident = trees_of(to).resident;
    resident.append(to, source.tokens.data(), std::min(length, resident.length(from)));
    trim(to, length);
}

void KvSlots::exchange(int a, int b) {
    if (slots_[size_t(a)].tokens.size() < slots_[size_t(b)].tokens.size()) std::swap(a, b);
    const size_t longer = slots_[size_t(a)].tokens.size(), shorter = slots_[size_t(b)].tokens.size();
    if (longer > shorter) {
        copy_cells(a, b);
        if (!remove_cells(a, llama_pos(shorter)))
            throw std::logic_error("cells of a slot that is swapped cannot be removed");
    }
    rows_.swap(a, b, longer);
    const auto swap_in = [&](Trees & trees) {
        trees.resident.swap(a, b);
        trees.promised.swap(a, b);
    };
    swap_in(trees_of(a));
    if (slots_[size_t(a)].key != slots_[size_t(b)].key) swap_in(trees_of(b));
    std::swap(slots_[size_t(a)], slots_[size_t(b)]);
}

void KvSlots::clear_all() {
    llama_memory_clear(llama_get_memory(context_), false);
    for (auto & slot : slots_) {
        slot.tokens.clear();
        slot.next_position = 0;
        slot.prompt_end = {};
    }
    trees_.clear();
}

void KvSlots::clear(PolicyVersion version) {
    for (int slot = 0; slot < count(); slot++) {
        if (slots_[size_t(slot)].key == version) trim(slot, 0);
    }
    trees_.erase(version);
}

SavedKv KvSlots::save(int slot) const {
    SavedKv saved;
    saved.state.resize(llama_state_seq_get_size(context_, slot));
    saved.state.resize(llama_state_seq_get_data(context_, saved.state.data(), saved.state.size(), slot));
    saved.tokens = slots_[size_t(slot)].tokens.size();
    const Trees * trees = find_trees(slots_[size_t(slot)].key);
    saved.shareable = trees ? trees->resident.length(slot) : 0;
    return saved;
}

bool KvSlots::restore(int slot, const SavedKv & saved, const std::vector<int32_t> & tokens) {
    trim(slot, 0);
    if (llama_state_seq_set_data(context_, saved.state.data(), saved.state.size(), slot) == 0) {
        remove_all_cells(slot);
        return false;
    }
    KvSlot & s = slots_[size_t(slot)];
    s.tokens.assign(tokens.begin(), tokens.begin() + long(saved.tokens));
    s.next_position = places_.behind(s.tokens.data(), saved.tokens);
    trees_of(slot).resident.append(slot, tokens.data(), saved.shareable);
    return true;
}

}  // namespace cria
