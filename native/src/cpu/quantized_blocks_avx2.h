// Reads quantized weights as integers. In small blocks, of 32, a weight is d * q, or d * q + m; d is F16, or a power of
// two. In large blocks, of 256, every 16 weights have an integer scale s of their own, and the weight is d * s * q, or
// for every 32 d * s * q - m * (an integer). The layouts are those of ggml-common.h. AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "ggml.h"

namespace cria::CRIA_INTEGER_UNIT {

constexpr int kSmallBlock = 32, kLargeBlock = 256;

inline uint16_t read_half(const uint8_t * bytes) {
    uint16_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    return bits;
}

// 16 bytes hold values 0 to 15 in their lower halves, 16 to 31 in their upper ones.
inline __m256i read_nibbles(const uint8_t * bytes) {
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(0x0f));
}

// 32 bits as bytes of 0 or 16.
inline __m256i read_fifth_bits(const uint8_t * bytes) {
    int32_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    const __m256i spread = _mm256_shuffle_epi8(
        _mm256_set1_epi32(bits), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i each = _mm256_set1_epi64x(int64_t(0x8040201008040201));
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, each), each), _mm256_set1_epi8(16));
}

// kBytes; kMins: whether values have a minimum, behind the scale; read(): 32 signed bytes.
template <ggml_type type>
struct SmallBlock;

template <>
struct SmallBlock<GGML_TYPE_Q8_0> {
    static constexpr int kBytes = 34;
    static constexpr bool kMins = false;
    static __m256i read(const uint8_t * block) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(block + 2));
    }
};

template <>
struct SmallBlock<GGML_TYPE_Q4_0> {
    static constexpr int kBytes = 18;
    static constexpr bool kMins = false;
    static __m256i read(const uint8_t * block) { return _mm256_sub_epi8(read_nibbles(block + 2), _mm256_set1_epi8(8)); }
};

template <>
struct SmallBlock<GGML_TYPE_Q4_1> {
    static constexpr int kBytes = 20;
    static constexpr bool kMins = true;
    static __m256i read(const uint8_t * block) { return read_nibbles(block + 4); }
};

template <>
struct SmallBlock<GGML_TYPE_Q5_0> {
    static constexpr int kBytes = 22;
    static constexpr bool kMins = false;
    static __m256i read(const uint8_t * block) {
        return _mm256_sub_epi8(
            _mm256_or_si256(read_nibbles(block + 6), read_fifth_bits(block + 2)), _mm256_set1_epi8(16));
    }
};

template <>
struct SmallBlock<GGML_TYPE_Q5_1> {
    static constexpr int kBytes = 24;
    static constexpr bool kMins = true;
    static __m256i read(const uint8_t * block) {
        return _mm256_or_si256(read_nibbles(block + 8), read_fifth_bits(block + 4));
    }
};

template <>
struct SmallBlock<GGML_TYPE_IQ4_NL> {
    static constexpr int kBytes = 18;
    static constexpr bool kMins = false;
    static __m256i read(const uint8_t * block) {
        const __m128i values = _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), read_nibbles(block + 2));
    }
};

template <>
struct SmallBlock<GGML_TYPE_MXFP4> {
    static constexpr int kBytes = 17;
    static constexpr bool kMins = false;
    static __m256i read(const uint8_t * block) {
        // Twice the values, which the scale makes up for.
        const __m128i values = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), read_nibbles(block + 1));
    }
};

// A block's scale d.
template <ggml_type type>
inline float read_scale(SmallBlock<type>, const uint8_t * block) {
    return _cvtsh_ss(read_half(block));
}

// 2^(e - 128), as ggml computes it: the two smallest are subnormal.
inline float read_scale(SmallBlock<GGML_TYPE_MXFP4>, const uint8_t * block) {
    const uint32_t bits = *block < 2 ? 0x00200000u << *block : (uint32_t(*block) - 1) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return scale;
}

// kBytes; kScale: the place of d; kMins: whether every 32 values have a minimum, whose d stands behind the first;
// kOffset: to subtract from values; read<s>(): 32 unsigned bytes, the s-th of eight; read_scales(): integers for each
// 16 values, and the eight minima.
template <ggml_type type>
struct LargeBlock;

// Eight scales and eight minima of six bits, in twelve bytes. Scales are doubled: both halves of 32 values have them.
inline void read_six_bits(const uint8_t * bytes, __m128i & scales, __m128i & mins) {
    uint32_t in[3], out[4];
    std::memcpy(in, bytes, sizeof in);
    out[0] = in[0] & 0x3f3f3f3f;
    out[1] = (in[2] & 0x0f0f0f0f) | ((in[0] >> 6 & 0x03030303) << 4);
    out[2] = in[1] & 0x3f3f3f3f;
    out[3] = (in[2] >> 4 & 0x0f0f0f0f) | ((in[1] >> 6 & 0x03030303) << 4);
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i *>(out));
    scales = _mm_unpacklo_epi8(all, all);
    mins = _mm_cvtepu8_epi16(_mm_srli_si128(all, 8));
}

// The s-th 32 of 256 nibbles: 32 bytes hold two of them, the first in their lower halves.
template <int s>
inline __m256i read_large_nibbles(const uint8_t * bytes) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes + s / 2 * 32));
    return _mm256_and_si256(s % 2 == 0 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(0x0f));
}

template <>
struct LargeBlock<GGML_TYPE_Q4_K> {
    static constexpr int kBytes = 144, kScale = 0, kOffset = 0;
    static constexpr bool kMins = true;
    template <int s>
    static __m256i read(const uint8_t * block) {
        return read_large_nibbles<s>(block + 16);
    }
    static void read_scales(const uint8_t * block, __m128i & scales, __m128i & mins) {
        read_six_bits(block + 4, scales, mins);
    }
};

template <>
struct LargeBlock<GGML_TYPE_Q5_K> {
    static constexpr int kBytes = 176, kScale = 0, kOffset = 0;
    static constexpr bool kMins = true;
    template <int s>
    static __m256i read(const uint8_t * block) {
        // Bit s of byte i belongs to value 32 s + i.
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(block + 16));
        const __m256i fifth =
            s < 4 ? _mm256_slli_epi16(bits, s < 4 ? 4 - s : 0) : _mm256_srli_epi16(bits, s < 4 ? 0 : s - 4);
        return _mm256_or_si256(read_large_nibbles<s>(block + 48), _mm256_and_si256(fifth, _mm256_set1_epi8(16)));
    }
    static void read_scales(const uint8_t * block, __m128i & scales, __m128i & mins) {
        read_six_bits(block + 4, scales, mins);
    }
};

template <>
struct LargeBlock<GGML_TYPE_Q6_K> {
    static constexpr int kBytes = 210, kScale = 208, kOffset = 32;
    static constexpr bool kMins = false;
    template <int s>
    static __m256i read(const uint8_t * block) {
        // Each half of the block: 64 bytes of nibbles, first all lower halves; 32 bytes of two bits for each 32 values.
        constexpr int half = s / 4, part = s % 4;
        const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(block + 64 * half + 32 * (part % 2)));
        const __m256i low = _mm256_and_si256(part < 2 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(0x0f));
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(block + 128 + 32 * half));
        const __m256i high = part < 2    ? _mm256_slli_epi16(bits, part == 0 ? 4 : 2)
                             : part == 2 ? bits
                                         : _mm256_srli_epi16(bits, 2);
        return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
    }
    static void read_scales(const uint8_t * block, __m128i & scales, __m128i & mins) {
        scales = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 192));
        mins = _mm_setzero_si128();
    }
};

// 16-bit scales of the s-th 32 values, each scale eight times.
template <int s>
inline __m256i spread_scales(__m128i scales) {
    constexpr int64_t first = 0x0101010101010101 * (2 * s), second = 0x0101010101010101 * (2 * s + 1);
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, _mm_set_epi64x(second, first)));
}

// Calls use(SmallBlock) or use(LargeBlock) for a type that one of them describes.
template <typename Use>
inline void with_blocks(ggml_type type, const Use & use) {
    switch (type) {
        case GGML_TYPE_Q8_0:
            return use(SmallBlock<GGML_TYPE_Q8_0>{});
        case GGML_TYPE_Q4_0:
            return use(SmallBlock<GGML_TYPE_Q4_0>{});
        case GGML_TYPE_Q4_1:
            return use(SmallBlock<GGML_TYPE_Q4_1>{});
        case GGML_TYPE_Q5_0:
            return use(SmallBlock<GGML_TYPE_Q5_0>{});
        case GGML_TYPE_Q5_1:
            return use(SmallBlock<GGML_TYPE_Q5_1>{});
        case GGML_TYPE_IQ4_NL:
            return use(SmallBlock<GGML_TYPE_IQ4_NL>{});
        case GGML_TYPE_MXFP4:
            return use(SmallBlock<GGML_TYPE_MXFP4>{});
        case GGML_TYPE_Q4_K:
            return use(LargeBlock<GGML_TYPE_Q4_K>{});
        case GGML_TYPE_Q5_K:
            return use(LargeBlock<GGML_TYPE_Q5_K>{});
        case GGML_TYPE_Q6_K:
            return use(LargeBlock<GGML_TYPE_Q6_K>{});
        default:
            return;
    }
}

}  // namespace cria::CRIA_INTEGER_UNIT
