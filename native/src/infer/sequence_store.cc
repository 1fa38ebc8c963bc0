#include "infer/sequence_store.h"

#include <algorithm>

#include "cria/error.h"
#include "llama.h"

namespace cria {

namespace {

// Requests do not wait for shorter promised prefixes: their prompts run in one batch instead.
constexpr size_t kMinAwaitedPrefix = 8;
// A free slot may lose its tail if it holds at most this many tokens more than the prompt uses.
constexpr size_t kMaxLostTail = 7;

}  // namespace

SequenceStore::SequenceStore(llama_context * context, int slots, PrefixSharing sharing, const PrefillCuts & cuts,
    const TokenPlaces & places, bool rewinds, size_t swap_bytes, SchedulerStats & totals)
    : context_(context), sharing_(sharing), swap_bytes_(swap_bytes), totals_(totals),
      slots_(context, slots, sharing, cuts, places, rewinds) {}

void SequenceStore::check_version(PolicyVersion version) const {
    if (versions_.count(version) > 0) return;
    throw Error("unknown-version", "is not kept, or was dropped")
        .subject("policy version")
        .received(std::to_string(version));
}

std::shared_ptr<Sequence> SequenceStore::create(PolicyVersion version) {
    check_version(version);
    auto sequence = std::make_shared<Sequence>();
    sequence->version = version;
    sequence->id = sequence->family = take_id();
    sequences_[sequence->id] = sequence;
    return sequence;
}

std::shared_ptr<Sequence> SequenceStore::fork(const Sequence & original) {
    const auto copy = create(original.version);
    copy->history = original.history;
    copy->family = original.family;
    copy->fork_length = original.tokens.size();
    copy->tokens = original.tokens;
    copy->next_logits = original.next_logits;
    return copy;
}

void SequenceStore::take_over(Sequence & sequence, PolicyVersion version) {
    check_version(version);
    if (version == kLivePolicy || sequence.version == kLivePolicy) {
        throw Error("live-version", "cannot take over keys and values, or leave them to others")
            .subject("live policy")
            .expected("two kept versions of one model")
            .received("one that each optimizer step changes, or of another model")
            .remedy("keep a version, and create the sequence from its engine");
    }
    if (version == sequence.version) return;
    std::vector<KvHistory::Part> parts;
    if (sequence.history) parts = sequence.history->parts;
    const size_t kept = sequence.tokens.empty() ? 0 : sequence.tokens.size() - 1;
    if (kept > (parts.empty() ? 0 : parts.back().end)) parts.push_back({kept, sequence.version});
    sequence.version = version;
    sequence.family = take_id();
    sequence.fork_length = kept;
    sequence.next_logits.reset();
    if (!parts.empty())
        sequence.history = std::make_shared<const KvHistory>(KvHistory{kFirstHistory | take_id(), std::move(parts)});
    // Tokens that were evaluated beyond belong to no version's part.
    if (sequence.saved.tokens > kept) drop_saved(sequence);
    if (sharing_ == PrefixSharing::chunks) sequence.saved.shareable = 0;
    if (sequence.slot < 0) return;
    KvSlot & slot = slot_of(sequence);
    slot.family = sequence.family;
    if (sequence.history) slots_.begin_history(sequence.slot, sequence.kv_key(), kept);
    if (sequence.history && slot.tokens.size() <= kept) return;
    // give_slot() finds the slot again, and trims it.
    slot.owner = 0;
    sequence.slot = -1;
}

std::shared_ptr<Sequence> SequenceStore::find(SequenceId id) const {
    const auto it = sequences_.find(id);
    if (it == sequences_.end()) {
        throw Error("unknown-sequence", "does not exist or was disposed")
            .subject("sequence")
            .received(std::to_string(id));
    }
    return it->second;
}

void SequenceStore::reset(Sequence & sequence) {
    if (sequence.slot >= 0) slots_[sequence.slot].owner = 0;
    drop_saved(sequence);
    const SequenceId id = sequence.id;
    const PolicyVersion version = sequence.version;
    sequence = {};
    sequence.id = id;
    sequence.version = version;
    sequence.family = take_id();
}

void SequenceStore::release(Sequence & sequence) {
    if (sequence.slot >= 0) slots_[sequence.slot].owner = 0;
    sequence.slot = -1;
    drop_saved(sequence);
    sequences_.erase(sequence.id);
}

void SequenceStore::drop_saved(Sequence & sequence) {
    swapped_bytes_ -= sequence.saved.state.size();
    sequence.saved = {};
}

void SequenceStore::clear() {
    slots_.clear_all();
    for (auto & [id, sequence] : sequences_) {
        sequence->next_logits.reset();
        drop_saved(*sequence);
    }
}

void SequenceStore::clear(PolicyVersion version) {
    if (versions_.size() == 1) return clear();
    slots_.clear(version);
    for (auto & [id, sequence] : sequences_) {
        if (!sequence->uses(version)) continue;
        sequence->next_logits.reset();
        drop_saved(*sequence);
    }
}

void SequenceStore::forget_version(PolicyVersion version) {
    check_version(version);
    for (const auto & [id, sequence] : sequences_) {
        if (!sequence->uses(version)) continue;
        throw Error("version-in-use", "has a sequence that was not disposed")
            .subject("policy version")
            .received(std::to_string(version));
    }
    slots_.clear(version);
}

void SequenceStore::remove_version(PolicyVersion version) {
    forget_version(version);
    versions_.erase(version);
}

void SequenceStore::swap_slots(int a, int b) {
    slots_.exchange(a, b);
    totals_.moved_sequences++;
    for (const int slot : {a, b}) {
        const auto it = sequences_.find(slots_[slot].owner);
        if (it != sequences_.end()) it->second->slot = slot;
    }
}

bool SequenceStore::awaits_prefix(const Sequence & sequence) const {
    const size_t promised = slots_.find_promised(sequence.tokens, sequence.kv_key());
    return promised >= kMinAwaitedPrefix && promised > slots_.find_prefix(sequence.tokens, sequence.kv_key()).length &&
           promised > sequence.saved.tokens;
}

bool SequenceStore::give_slot(Sequence & sequence) {
    PrefixMatch match = slots_.find_prefix(sequence.tokens, sequence.kv_key());
    if (sharing_ != PrefixSharing::tokens) {
        PrefixMatch relatives = slots_.find_in_family(sequence.tokens, sequence.fork_length, sequence.family);
        if (relatives.length >= match.length) match = std::move(relatives);
    }
    if (match.length <= sequence.saved.tokens) match = {};
    for (const int holder : match.holders) {
        const PrefixLogits & end = slots_[holder].prompt_end;
        if (end.length == sequence.tokens.size() && end.length == match.length) sequence.next_logits = end.values;
    }
    int slot = choose_free(match);
    if (slot < 0) {
        // The slot with the prefix is the last to be taken.
        if (!match.holders.empty()) touch(match.holders[0]);
        slot = evict();
    }
    if (slot < 0) return false;
    slots_.set_key(slot, sequence.kv_key());
    slots_[slot].owner = sequence.id;
    slots_[slot].family = sequence.family;
    sequence.slot = slot;
    if (std::find(match.holders.begin(), match.holders.end(), slot) != match.holders.end()) {
        slots_.trim(slot, match.length);
    } else if (match.length >= slots_.least_copied()) {
        touch(match.holders[0]);
        slots_.copy(match.holders[0], slot, match.length);
    } else if (!sequence.saved.state.empty()) {
        if (slots_.restore(slot, sequence.saved, sequence.tokens)) totals_.restores++;
    } else {
        slots_.trim(slot, 0);
    }
    drop_saved(sequence);
    return true;
}

// Chooses a free slot with the prefix and little more, which needs no copy; else the least recently used free slot,
// which may hold the prefix and a longer tail.
int SequenceStore::choose_free(const PrefixMatch & match) {
    int best = -1;
    for (const int holder : match.holders) {
        const KvSlot & slot = slots_[holder];
        if (slot.owner == 0 && (best < 0 || slot.tokens.size() < slots_[best].tokens.size())) best = holder;
    }
    const bool fits = best >= 0 && slots_[best].tokens.size() <= match.length + kMaxLostTail;
    return fits ? best : slots_.find_free();
}

// Takes the slot of the sequence that has been idle longest; -1 when all are busy.
int SequenceStore::evict() {
    int oldest = -1;
    for (int i = 0; i < slots_.count(); i++) {
        const auto it = sequences_.find(slots_[i].owner);
        if (it == sequences_.end() || it->second->request) continue;
        if (oldest < 0 || slots_[i].last_use < slots_[oldest].last_use) oldest = i;
    }
    if (oldest < 0) return -1;
    Sequence & idle = *sequences_.at(slots_[oldest].owner);
    totals_.evictions++;
    const size_t bytes = llama_state_seq_get_size(context_, oldest);
    if (swapped_bytes_ + bytes <= swap_bytes_) {
        idle.saved = slots_.save(oldest);
        swapped_bytes_ += idle.saved.state.size();
    } else {
        totals_.recomputed_tokens += slots_[oldest].tokens.size();
    }
    idle.slot = -1;
    slots_[oldest].owner = 0;
    return oldest;
}

}  // namespace cria
