// Prints what THREADS threads of this machine do in a second, at best: `f32`, `int8` and `int16` operations (two a
// multiply-add) of whole vectors in registers, which no matrix product exceeds, or bytes read from memory (`read`), which
// no decoding of one sequence exceeds. 0: the compiler's target has no such instructions.
//   machine-peaks f32|int8|int16|read THREADS SECONDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
typedef float Vector __attribute__((vector_size(kBytes)));
constexpr int kLanes = kBytes / sizeof(float);
// Enough independent sums to hide an operation's latency, few enough for the registers of any machine.
constexpr int kSums = 12;
// About as long as the product that it is compared with: on a busy machine both are held up alike.
constexpr int kSteps = 1 << 24;

// The work of a thread, and a value that depends on all of it: the compiler cannot leave it out.
struct Done {
    double units;
    double value;
};

Done multiply_floats(int thread) {
    const float seed = 1.0f + float(thread);
    Vector sums[kSums], factor, term;
    for (int lane = 0; lane < kLanes; lane++) factor[lane] = 0.999f, term[lane] = seed;
    for (auto & sum : sums) sum = term;
    for (int step = 0; step < kSteps; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < kSums; i++) sums[i] = sums[i] * factor + term;
    }
    double total = 0;
    for (const auto & sum : sums) total += double(sum[0]);
    return {2.0 * kLanes * kSums * kSteps, total};
}

#if defined(__AVX512BW__)
typedef __m512i Integers;
Integers fill(int value) { return _mm512_set1_epi8(char(value)); }
#elif defined(__AVX2__)
typedef __m256i Integers;
Integers fill(int value) { return _mm256_set1_epi8(char(value)); }
#endif

#if defined(__AVX2__)
template <bool bytes>
Integers add_products(Integers sum, Integers a, Integers b) {
#if defined(__AVX512VNNI__)
    return bytes ? _mm512_dpbusd_epi32(sum, a, b) : _mm512_dpwssd_epi32(sum, a, b);
#elif defined(__AVX512BW__)
    if (!bytes) return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
#else
    if (!bytes) return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
#endif
}

template <bool bytes>
Done multiply_integers(int thread) {
    Integers sums[kSums], a = fill(thread + 1), b = fill(1);
    for (auto & sum : sums) sum = fill(0);
    for (int step = 0; step < kSteps; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < kSums; i++) {
            // Without this the product of two constants would be taken out of the loop.
            asm volatile("" : "+v"(b));
            sums[i] = add_products<bytes>(sums[i], a, b);
        }
    }
    double total = 0;
    for (const auto & sum : sums) {
        int first;
        std::memcpy(&first, &sum, sizeof first);
        total += first;
    }
    const double lanes = double(sizeof(Integers)) / (bytes ? 1 : 2);
    return {2.0 * lanes * kSums * kSteps, total};
}
#else
template <bool bytes>
Done multiply_integers(int) {
    return {0, 1};
}
#endif

// Larger than any cache of a machine with a few cores.
constexpr size_t kRead = size_t(512) << 20;

// Written once, in huge pages where the system has them: with small ones the reading waits for page tables.
const float * allocate() {
    constexpr size_t kHugePage = size_t(2) << 20;
    auto * values = static_cast<float *>(std::aligned_alloc(kHugePage, kRead));
    if (values == nullptr) std::abort();
#if defined(__linux__)
    madvise(values, kRead, MADV_HUGEPAGE);
#endif
    std::fill_n(values, kRead / sizeof(float), 1.0f);
    return values;
}

Done read_memory(int thread) {
    static const float * buffers[64] = {};
    const float *& buffer = buffers[thread];
    if (buffer == nullptr) buffer = allocate();
    const auto * values = reinterpret_cast<const Vector *>(buffer);
    Vector sums[kSums] = {};
    const size_t count = kRead / sizeof(Vector) / kSums * kSums;
    for (size_t at = 0; at < count; at += kSums) {
        Vector loaded;
#pragma GCC unroll 12
        for (size_t i = 0; i < kSums; i++) {
            std::memcpy(&loaded, values + at + i, sizeof loaded);
            sums[i] += loaded;
        }
    }
    double total = 0;
    for (const auto & sum : sums) total += double(sum[0]);
    return {double(count * sizeof(Vector)), total};
}

// Units a second until the last of the threads is done.
double run_at_once(Done (*work)(int), int count, double & seconds) {
    std::vector<std::thread> threads;
    std::vector<Done> results(static_cast<size_t>(count));
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; i < count; i++) threads.emplace_back([&results, work, i] { results[size_t(i)] = work(i); });
    for (auto & thread : threads) thread.join();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    double units = 0;
    for (const Done & done : results) {
        units += done.units;
        if (done.value == 0) std::fprintf(stderr, "a sum is zero\n");
    }
    return units / seconds;
}

}  // namespace

int main(int argc, char ** argv) {
    const std::string kind = argc == 4 ? argv[1] : "";
    Done (*work)(int) = kind == "f32"     ? multiply_floats
                        : kind == "int8"  ? multiply_integers<true>
                        : kind == "int16" ? multiply_integers<false>
                        : kind == "read"  ? read_memory
                                          : nullptr;
    const int threads = argc == 4 ? std::atoi(argv[2]) : 0;
    if (work == nullptr || threads < 1 || threads > 64)
        return std::fprintf(stderr, "usage: machine-peaks f32|int8|int16|read THREADS SECONDS, 1 to 64 threads\n"), 2;
    const double limit = std::atof(argv[3]);
    double best = 0, spent = 0, seconds = 0;
    // The first reading also writes what is read.
    if (kind == "read") run_at_once(work, threads, seconds);
    while (spent < limit) {
        best = std::max(best, run_at_once(work, threads, seconds));
        spent += seconds;
    }
    std::printf("%.6g\n", best);
}
