// Prints the F32 operations per second of THREADS threads that do nothing but multiply-adds of whole vectors in registers:
// what no matrix product on this machine exceeds.
//   fma-peak THREADS SECONDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

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

float multiply_and_add(float seed) {
    Vector sums[kSums], factor, term;
    for (int lane = 0; lane < kLanes; lane++) factor[lane] = 0.999f, term[lane] = seed;
    for (auto & sum : sums) sum = term;
    for (int step = 0; step < kSteps; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < kSums; i++) sums[i] = sums[i] * factor + term;
    }
    float total = 0;
    for (const auto & sum : sums) total += sum[0];
    return total;
}

// Seconds until the last of the threads is done.
double run_at_once(int count) {
    std::vector<std::thread> threads;
    std::vector<float> results(static_cast<size_t>(count));
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; i < count; i++) threads.emplace_back([&results, i] { results[size_t(i)] = multiply_and_add(1.0f + float(i)); });
    for (auto & thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    // The sums are used, or the compiler would leave them out.
    for (float result : results) if (result == 0) std::fprintf(stderr, "a sum is zero\n");
    return seconds;
}

}  // namespace

int main(int argc, char ** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: fma-peak THREADS SECONDS\n"), 2;
    const int threads = std::atoi(argv[1]);
    const double limit = std::atof(argv[2]);
    double best = 1e9, spent = 0;
    while (spent < limit) {
        const double seconds = run_at_once(threads);
        best = std::min(best, seconds);
        spent += seconds;
    }
    std::printf("%.6g\n", 2.0 * kLanes * kSums * double(kSteps) * threads / best);
}
