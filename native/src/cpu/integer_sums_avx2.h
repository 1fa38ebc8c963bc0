// Sums of products of small integers in 32 bits: exact, so that every instruction set gives the same. AVX2, or VNNI.
#pragma once

#include <immintrin.h>

namespace cria::CRIA_INTEGER_UNIT {

// Each of eight sums += the products of two neighbouring 16-bit values.
inline __m256i add_pair_products(__m256i sums, __m256i a, __m256i b) {
#ifdef __AVX512VNNI__
    return _mm256_dpwssd_epi32(sums, a, b);
#else
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
#endif
}

}  // namespace cria::CRIA_INTEGER_UNIT
