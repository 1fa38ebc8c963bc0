#include "cria/vector_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "cria/error.h"

namespace cria {

void VectorTable::define(int32_t first, int32_t count, int32_t columns, int32_t rows) {
    const Locked lock(mutex_);
    if (first != end_ || count < 1 || count > std::numeric_limits<int32_t>::max() - end_) {
        throw Error("bad-option", "are not the next ids")
            .subject("vectors")
            .expected("at least one, from " + std::to_string(end_) + " on")
            .received(std::to_string(count) + " from " + std::to_string(first) + " on");
    }
    definitions_.push_back({first, count, columns, rows});
    end_ += count;
}

void VectorTable::hold(int32_t first, std::vector<float> values) {
    const Locked lock(mutex_);
    const Definition & definition = defined_at(first);
    if (values.size() != size_t(definition.count) * width_) {
        throw Error("bad-option", "have another size")
            .subject("vectors from " + std::to_string(first) + " on")
            .expected(std::to_string(definition.count) + " of " + std::to_string(width_) + " floats")
            .received(std::to_string(values.size()) + " floats");
    }
    held_[first] = std::move(values);
}

void VectorTable::drop(int32_t first) {
    const Locked lock(mutex_);
    held_.erase(defined_at(first).first);
}

bool VectorTable::is_empty() const {
    const Locked lock(mutex_);
    return end_ == first_;
}

bool VectorTable::knows(int32_t id) const {
    const Locked lock(mutex_);
    return id >= first_ && id < end_;
}

VectorGrid VectorTable::grid_of(int32_t id) const {
    const Locked lock(mutex_);
    const Definition * definition = find(id);
    if (!definition) return {};
    return {definition->first, definition->columns, definition->rows};
}

void VectorTable::check_held(const std::vector<int32_t> & tokens, const char * subject) const {
    const Locked lock(mutex_);
    for (const int32_t token : tokens) {
        if (token >= first_) {
            values_of(token, subject);
        } else if (token < 0) {
            throw Error("bad-token", "is not a token of this vocabulary")
                .subject(subject)
                .expected("0 to " + std::to_string(first_ - 1))
                .received(std::to_string(token));
        }
    }
}

void VectorTable::read(const int32_t * ids, size_t count, float * out) const {
    const Locked lock(mutex_);
    for (size_t i = 0; i < count; i++)
        std::memcpy(out + i * width_, values_of(ids[i], "vectors"), width_ * sizeof(float));
}

const VectorTable::Definition * VectorTable::find(int32_t id) const {
    const auto after = std::upper_bound(definitions_.begin(), definitions_.end(), id,
        [](int32_t value, const Definition & definition) { return value < definition.first; });
    return id < end_ && after != definitions_.begin() ? &*(after - 1) : nullptr;
}

const float * VectorTable::values_of(int32_t id, const char * subject) const {
    const Definition * definition = find(id);
    if (!definition) {
        throw Error("bad-token", "is not a token of this vocabulary, nor a vector of an image")
            .subject(subject)
            .expected("0 to " + std::to_string(end_ - 1))
            .received(std::to_string(id));
    }
    const auto values = held_.find(definition->first);
    if (values == held_.end()) {
        throw Error("vectors-missing", "stands for a vector whose values are not held")
            .subject(subject)
            .received(std::to_string(id))
            .remedy("hold the image's vectors while they are evaluated");
    }
    return values->second.data() + size_t(id - definition->first) * width_;
}

const VectorTable::Definition & VectorTable::defined_at(int32_t first) const {
    const Definition * definition = find(first);
    if (!definition || definition->first != first) {
        throw Error("bad-option", "were not defined together")
            .subject("vectors")
            .expected("the first id of a definition")
            .received(std::to_string(first));
    }
    return *definition;
}

}  // namespace cria
