// Reads eight neighbouring weights of a row, in each of ggml's types that can be trained on. Layouts are those of
// ggml-common.h; their sizes are even, so quants are read two bytes at a time.
#pragma once

#include <stdint.h>

#include "platform.cuh"

namespace cria_cuda {

// The numbers of ggml_type.
enum WeightType : int32_t {
    kF32 = 0,
    kF16 = 1,
    kQ4_0 = 2,
    kQ4_1 = 3,
    kQ5_0 = 6,
    kQ5_1 = 7,
    kQ8_0 = 8,
    kQ4_K = 12,
    kQ5_K = 13,
    kQ6_K = 14,
    kBF16 = 30,
};

__device__ __forceinline__ float read_half(const uint8_t * p) {
    return half_bits_to_float(*reinterpret_cast<const uint16_t *>(p));
}

__device__ __forceinline__ float bits_to_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct Eight {
    uint8_t byte[8];
};

__device__ __forceinline__ Eight read_eight(const uint8_t * p) {
    Eight e;
    for (int i = 0; i < 4; i++) {
        const uint16_t pair = reinterpret_cast<const uint16_t *>(p)[i];
        e.byte[2 * i] = uint8_t(pair);
        e.byte[2 * i + 1] = uint8_t(pair >> 8);
    }
    return e;
}

// The low or the high nibbles.
__device__ __forceinline__ Eight read_nibbles(const uint8_t * p, bool high) {
    Eight e = read_eight(p);
    for (int i = 0; i < 8; i++) e.byte[i] = high ? e.byte[i] >> 4 : e.byte[i] & 15;
    return e;
}

// Scale and minimum of one of a K-quant's eight sub-blocks: six bits each, packed in 12 bytes.
struct ScaleMin {
    float scale, min;
};

__device__ __forceinline__ ScaleMin read_scale_min(const uint8_t * block, int sub) {
    const uint8_t * s = block + 4;
    const int scale = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | ((s[sub - 4] >> 6) << 4);
    const int min = sub < 4 ? s[sub + 4] & 63 : (s[sub + 4] >> 4) | ((s[sub] >> 6) << 4);
    return {read_half(block) * float(scale), read_half(block + 2) * float(min)};
}

// values[0..7] = row[column .. column + 7]; column is a multiple of 8.
template <int32_t Type>
__device__ __forceinline__ void read_weights(const uint8_t * row, int column, float * values) {
    if constexpr (Type == kF32) {
        const float * x = reinterpret_cast<const float *>(row) + column;
        for (int i = 0; i < 8; i++) values[i] = x[i];
    } else if constexpr (Type == kF16) {
        for (int i = 0; i < 8; i++) values[i] = read_half(row + 2 * (column + i));
    } else if constexpr (Type == kBF16) {
        const uint16_t * x = reinterpret_cast<const uint16_t *>(row) + column;
        for (int i = 0; i < 8; i++) values[i] = bits_to_float(uint32_t(x[i]) << 16);
    } else if constexpr (Type == kQ8_0) {
        const uint8_t * block = row + column / 32 * 34;
        const float d = read_half(block);
        const Eight q = read_eight(block + 2 + column % 32);
        for (int i = 0; i < 8; i++) values[i] = d * float(int8_t(q.byte[i]));
    } else if constexpr (Type == kQ4_0 || Type == kQ4_1 || Type == kQ5_0 || Type == kQ5_1) {
        // [d, m?, high bits?, nibbles]: the low ones are the first half of the block.
        constexpr bool has_min = Type == kQ4_1 || Type == kQ5_1, five = Type == kQ5_0 || Type == kQ5_1;
        constexpr int high_at = has_min ? 4 : 2, nibbles_at = high_at + (five ? 4 : 0);
        const uint8_t * block = row + column / 32 * (nibbles_at + 16);
        const float d = read_half(block), offset = has_min ? read_half(block + 2) : -d * (five ? 16.0f : 8.0f);
        const int first = column % 32;
        const Eight q = read_nibbles(block + nibbles_at + first % 16, first >= 16);
        for (int i = 0; i < 8; i++) {
            const int high = five ? (block[high_at + first / 8] >> i & 1) << 4 : 0;
            values[i] = d * float(q.byte[i] | high) + offset;
        }
    } else if constexpr (Type == kQ4_K || Type == kQ5_K) {
        // [d, dmin, scales 12, high bits 32?, nibbles 128]: 32 bytes of nibbles hold two sub-blocks.
        constexpr int high_at = 16, nibbles_at = Type == kQ5_K ? 48 : 16;
        const uint8_t * block = row + column / 256 * (nibbles_at + 128);
        const int sub = column % 256 / 32, first = column % 32;
        const ScaleMin s = read_scale_min(block, sub);
        const Eight q = read_nibbles(block + nibbles_at + sub / 2 * 32 + first, sub % 2 == 1);
        for (int i = 0; i < 8; i++) {
            const int high = Type == kQ5_K ? (block[high_at + first + i] >> sub & 1) << 4 : 0;
            values[i] = s.scale * float(q.byte[i] | high) - s.min;
        }
    } else {
        static_assert(Type == kQ6_K, "a type without a reader");
        // [low nibbles 128, high pairs of bits 64, scales 16, d]: each half of 128 weights has four runs of 32.
        const uint8_t * block = row + column / 256 * 210;
        const int half = column % 256 / 128, run = column % 128 / 32, first = column % 32;
        const float d = read_half(block + 208) * float(int8_t(block[192 + half * 8 + run * 2 + first / 16]));
        const Eight low = read_nibbles(block + half * 64 + run % 2 * 32 + first, run >= 2);
        const Eight high = read_eight(block + 128 + half * 32 + first);
        for (int i = 0; i < 8; i++) values[i] = d * float(int(low.byte[i] | (high.byte[i] >> (2 * run) & 3) << 4) - 32);
    }
}

}  // namespace cria_cuda
