// exp for loops that the compiler vectorises, and the clones of a function for the instruction sets that it may meet.
#pragma once

#include <cstdint>
#include <cstring>

// One binary for every x86-64: the loader picks the clone that the machine supports.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CRIA_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define CRIA_CLONES
#endif

namespace cria {

// exp for x <= 0 within 2e-7 relative: 2^k e^r with |r| <= ln 2 / 2 and a degree-6 polynomial (Cephes expf's coefficients).
// Below -87 the result would be subnormal and counts as 0.
inline __attribute__((always_inline)) float fast_exp(float x) {
    const float clamped = x < -87.0f ? -87.0f : x;
    // The builtin, not std::nearbyint: that one is compiled for the oldest machine and would be called for each element.
    const float k = __builtin_nearbyintf(clamped * 1.44269504f);
    const float r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t bits = (int32_t(k) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : p * power;
}

}  // namespace cria
