// Drives KvSlots over a memory that may refuse to remove a part of a sequence, as those of layers with a state do, for
// slots.test.ts. Lines of standard input:
//   slots <rewinds 0|1>          four slots; the first line
//   append <slot> <token>...     tokens that were evaluated
//   cells <slot> <count>         cells of a batch that failed
//   refuse <count>               the memory refuses so many removals
//   trim <slot> <length>, fail <slot>, clear <slot>
//                                print the slot's tokens, its cells, and the tokens that an equal prompt shares
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "infer/kv_slots.h"
#include "llama-memory.h"
#include "llama.h"

namespace {

constexpr int kSlots = 4;

struct Memory {
    int cells[kSlots] = {};
    int refusals = 0;
};
Memory memory;

}  // namespace

// llama.cpp's part. Slots are streams, and positions count cells.
llama_memory_t llama_get_memory(const llama_context *) { return nullptr; }
llama_rope_type llama_model_rope_type(const llama_model *) { return LLAMA_ROPE_TYPE_NORM; }
bool llama_memory_seq_rm(llama_memory_t, llama_seq_id slot, llama_pos from, llama_pos) {
    // Removing a whole sequence never fails.
    if (from > 0 && memory.refusals > 0) {
        memory.refusals--;
        return false;
    }
    memory.cells[slot] = std::min(memory.cells[slot], int(from));
    return true;
}
void llama_memory_seq_cp(llama_memory_t, llama_seq_id, llama_seq_id, llama_pos, llama_pos) {}
void llama_memory_clear(llama_memory_t, bool) {}
size_t llama_state_seq_get_size(llama_context *, llama_seq_id) { return 0; }
size_t llama_state_seq_get_data(llama_context *, uint8_t *, size_t, llama_seq_id) { return 0; }
size_t llama_state_seq_set_data(llama_context *, const uint8_t *, size_t, llama_seq_id) { return 0; }

namespace cria {

KvRows::KvRows(llama_context *) {}
void KvRows::copy(int, int, size_t) const {}
void KvRows::swap(int, int, size_t) const {}

}  // namespace cria

int main() {
    const cria::VectorTable vectors(1000, 1);
    const cria::TokenPlaces places(nullptr, vectors);
    std::unique_ptr<cria::KvSlots> slots;
    std::string text;
    while (std::getline(std::cin, text)) {
        std::istringstream line(text);
        std::string command;
        int first = 0;
        line >> command >> first;
        if (command == "slots") {
            const cria::PrefillCuts cuts{512, 1000};
            slots =
                std::make_unique<cria::KvSlots>(nullptr, kSlots, cria::PrefixSharing::tokens, cuts, places, first == 1);
            continue;
        }
        if (!slots) return std::fprintf(stderr, "the first line must be: slots <rewinds>\n"), 2;
        if (command == "refuse") {
            memory.refusals = first;
            continue;
        }
        if (first < 0 || first >= kSlots) return std::fprintf(stderr, "there is no slot %d\n", first), 2;
        std::vector<int32_t> rest;
        for (int32_t token; line >> token;) rest.push_back(token);
        const std::vector<int32_t> held = (*slots)[first].tokens;
        if (command == "append") {
            slots->append(first, rest.data(), rest.size(), false);
            memory.cells[first] += int(rest.size());
        } else if (command == "cells") {
            memory.cells[first] += rest.at(0);
        } else {
            if (command == "trim") slots->trim(first, size_t(rest.at(0)));
            if (command == "fail") slots->remove_failed(first);
            if (command == "clear") slots->clear(cria::kLivePolicy);
            for (const int32_t token : (*slots)[first].tokens) std::printf("%d ", token);
            std::printf("/ %d / %zu\n", memory.cells[first], slots->find_prefix(held, cria::kLivePolicy).length);
        }
    }
}
