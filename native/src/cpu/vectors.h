// Vectors of floats and their operations that differ between instruction sets, above all fused ones. No source is
// compiled with contraction, so a * b + c is rounded twice everywhere; operations that must round once are written with
// fuse(). For units compiled for one instruction set. Everything is in an unnamed namespace: otherwise the linker would
// keep one unit's instructions for all of them.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define CRIA_INLINE inline __attribute__((always_inline))

namespace cria {

namespace {

// A vector may begin at any float.
typedef float Vec4 __attribute__((vector_size(16), aligned(4)));
typedef float Vec8 __attribute__((vector_size(32), aligned(4)));
typedef float Vec16 __attribute__((vector_size(64), aligned(4)));

// For each vector that the unit has registers for: splat(x); larger(a, b), which is b where either is NaN; fuse(a, b,
// c) = a * b + c, rounded once. Portable code for x86 has no such instruction and rounds twice.

template <typename Vec>
Vec splat(float x);
template <>
CRIA_INLINE Vec4 splat<Vec4>(float x) {
    return Vec4{x, x, x, x};
}

CRIA_INLINE Vec4 larger(Vec4 a, Vec4 b) {
#ifdef __SSE__
    return Vec4(_mm_max_ps(__m128(a), __m128(b)));
#else
    return a > b ? a : b;
#endif
}

CRIA_INLINE Vec4 fuse(Vec4 a, Vec4 b, Vec4 c) {
#if defined(__FMA__)
    return Vec4(_mm_fmadd_ps(__m128(a), __m128(b), __m128(c)));
#elif defined(__aarch64__)
    return Vec4(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
#else
    return a * b + c;
#endif
}

#ifdef __AVX2__
template <>
CRIA_INLINE Vec8 splat<Vec8>(float x) {
    return Vec8(_mm256_set1_ps(x));
}
CRIA_INLINE Vec8 larger(Vec8 a, Vec8 b) { return Vec8(_mm256_max_ps(__m256(a), __m256(b))); }
CRIA_INLINE Vec8 fuse(Vec8 a, Vec8 b, Vec8 c) { return Vec8(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c))); }
#endif

#ifdef __AVX512F__
template <>
CRIA_INLINE Vec16 splat<Vec16>(float x) {
    return Vec16(_mm512_set1_ps(x));
}
// _mm512_max_ps makes GCC 12 warn about a variable of its own header.
CRIA_INLINE Vec16 larger(Vec16 a, Vec16 b) { return Vec16(_mm512_maskz_max_ps(0xffff, __m512(a), __m512(b))); }
CRIA_INLINE Vec16 fuse(Vec16 a, Vec16 b, Vec16 c) { return Vec16(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c))); }
#endif

// Reads or writes the first `count` entries, fewer than all. The rest are 0 when read and stay unchanged when written.

CRIA_INLINE void load_first(const float * from, int count, Vec4 & to) {
    to = Vec4{};
    for (int i = 0; i < count; i++) to[i] = from[i];
}
CRIA_INLINE void store_first(float * to, int count, const Vec4 & from) {
    for (int i = 0; i < count; i++) to[i] = from[i];
}

#ifdef __AVX2__
CRIA_INLINE __m256i first_entries(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
CRIA_INLINE void load_first(const float * from, int count, Vec8 & to) {
    to = Vec8(_mm256_maskload_ps(from, first_entries(count)));
}
CRIA_INLINE void store_first(float * to, int count, const Vec8 & from) {
    _mm256_maskstore_ps(to, first_entries(count), __m256(from));
}
#endif

#ifdef __AVX512F__
CRIA_INLINE void load_first(const float * from, int count, Vec16 & to) {
    to = Vec16(_mm512_maskz_loadu_ps(__mmask16((1 << count) - 1), from));
}
CRIA_INLINE void store_first(float * to, int count, const Vec16 & from) {
    _mm512_mask_storeu_ps(to, __mmask16((1 << count) - 1), __m512(from));
}
#endif

// sum += factor * v, rounded as fuse() does. Vectors wider than the unit's registers are processed in parts.

CRIA_INLINE void add_scaled(Vec4 & sum, float factor, const Vec4 & v) { sum = fuse(splat<Vec4>(factor), v, sum); }

CRIA_INLINE void add_scaled(Vec8 & sum, float factor, const Vec8 & v) {
#ifdef __AVX2__
    sum = fuse(splat<Vec8>(factor), v, sum);
#else
    for (int half = 0; half < 2; half++)
        add_scaled(reinterpret_cast<Vec4 *>(&sum)[half], factor, reinterpret_cast<const Vec4 *>(&v)[half]);
#endif
}

CRIA_INLINE void add_scaled(Vec16 & sum, float factor, const Vec16 & v) {
#ifdef __AVX512F__
    sum = fuse(splat<Vec16>(factor), v, sum);
#else
    for (int half = 0; half < 2; half++)
        add_scaled(reinterpret_cast<Vec8 *>(&sum)[half], factor, reinterpret_cast<const Vec8 *>(&v)[half]);
#endif
}

}  // namespace

}  // namespace cria
