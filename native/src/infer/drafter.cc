#include "infer/drafter.h"

#include <algorithm>

namespace cria {

namespace {

constexpr int kIndexBits = 20;  // of the table: 12 MB
constexpr uint8_t kMostCount = 15;  // of hits and misses, which are then halved
constexpr int kCounts = kMostCount + 1;
constexpr float kMostJudged = 256;  // of a kind, then halved
constexpr double kLeastChance = 0.02;  // of a whole draft
// The relation of a shorter context's guess to the longest one's.
enum Support { kNone, kSame, kOther, kSupports };

}  // namespace

Drafter::Drafter(int32_t n_vocab) : n_vocab_(n_vocab) {
    if (n_vocab_ == 0) return;
    entries_.resize(size_t(1) << kIndexBits);
    records_.resize(kDraftContexts.size() * kSupports * kCounts * kCounts);
}

Drafter::Hashes Drafter::hash(
    const std::vector<int32_t> & tokens, size_t count, const std::vector<DraftToken> & draft) {
    Hashes hashes{};
    uint64_t state = 0x9e3779b97f4a7c15;
    size_t length = 0;
    for (size_t c = 0; c < kDraftContexts.size() && kDraftContexts[c] <= count + draft.size(); c++) {
        for (; length < kDraftContexts[c]; length++) {
            const int32_t token = length < draft.size() ? draft[draft.size() - 1 - length].token
                                                        : tokens[count - 1 - (length - draft.size())];
            state = (state ^ uint32_t(token)) * 0xff51afd7ed558ccd;
            state ^= state >> 32;
        }
        hashes[c] = (state ^ (c + 1)) * 0xc4ceb9fe1a85ec53;
    }
    return hashes;
}

void Drafter::observe(const std::vector<int32_t> & tokens, size_t from, size_t end) {
    for (size_t i = from; i < end && n_vocab_ > 0; i++) {
        if (tokens[i] >= n_vocab_) continue;
        for (const uint64_t h : hash(tokens, i, {}))
            if (h != 0) learn(h, tokens[i]);
    }
}

void Drafter::learn(uint64_t hash, int32_t next) {
    Entry & entry = entries_[hash >> (64 - kIndexBits)];
    if (entry.next < 0 || entry.tag != uint32_t(hash)) {
        // Another context's: it stays for as long as it was often right.
        entry.hits /= 2;
        entry.misses /= 2;
        if (entry.next < 0 || entry.hits == 0) entry = {uint32_t(hash), next, 0, 0};
        return;
    }
    uint8_t & count = entry.next == next ? entry.hits : entry.misses;
    if (count == kMostCount) {
        entry.hits /= 2;
        entry.misses /= 2;
    }
    count++;
    if (entry.misses > entry.hits) entry = {entry.tag, next, 0, 0};
}

double Drafter::chance_of(int kind) const {
    const Record & record = records_[size_t(kind)];
    // Before any was judged: as often as it was right so far.
    const int hits = kind / kCounts % kCounts, misses = kind % kCounts;
    const double prior = (hits + 0.5) / (hits + misses + 1.5);
    return (double(record.right) + 2 * prior) / (double(record.all) + 2);
}

DraftToken Drafter::guess(const Hashes & hashes) const {
    const auto find = [&](size_t context) -> const Entry * {
        const Entry & entry = entries_[hashes[context] >> (64 - kIndexBits)];
        const bool is_known = hashes[context] != 0 && entry.next >= 0 && entry.tag == uint32_t(hashes[context]);
        return is_known ? &entry : nullptr;
    };
    for (size_t context = kDraftContexts.size(); context-- > 0;) {
        const Entry * entry = find(context);
        if (!entry) continue;
        const Entry * shorter = nullptr;
        for (size_t c = context; c-- > 0 && !shorter;) shorter = find(c);
        const Support support = !shorter ? kNone : shorter->next == entry->next ? kSame : kOther;
        const int kind = ((int(context) * kSupports + support) * kCounts + entry->hits) * kCounts + entry->misses;
        return {entry->next, kind, chance_of(kind)};
    }
    return {};
}

std::vector<DraftToken> Drafter::propose(
    const std::vector<int32_t> & tokens, int most, const std::vector<int32_t> & stops) const {
    std::vector<DraftToken> draft;
    double all = 1;
    while (n_vocab_ > 0 && int(draft.size()) < most) {
        const DraftToken next = guess(hash(tokens, tokens.size(), draft));
        all *= next.chance;
        if (all < kLeastChance || std::find(stops.begin(), stops.end(), next.token) != stops.end()) break;
        draft.push_back(next);
    }
    return draft;
}

void Drafter::judge(const DraftToken & proposed, int32_t drawn) {
    Record & record = records_[size_t(proposed.kind)];
    if (record.all >= kMostJudged) record = {record.right / 2, record.all / 2};
    record.right += proposed.token == drawn ? 1 : 0;
    record.all++;
}

}  // namespace cria
