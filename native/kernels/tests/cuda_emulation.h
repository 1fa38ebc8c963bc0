// Runs CUDA blocks on the CPU, to check the logic of kernels without a GPU: the .cu files compile unchanged with a C++
// compiler when this header is found (see platform.cuh). Blocks run one after the other, each thread of a block as a
// fiber that runs until it must wait for others. CRIA_EMULATION_ORDER=reverse starts the last thread first, so that a
// missing barrier shows as another result. Shared memory begins as NaN, and CRIA_EMULATION_SHARED limits how much a
// block may have. It does not show speed, memory ordering, alignment or other limits of the chip. Products of tiles are
// computed as the tensor cores do, TF32 operands included; with CRIA_EMULATION_EXACT operands stay F32.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include <math.h>
#include <ucontext.h>

#define __global__
#define __device__ inline
#define __forceinline__
#define __launch_bounds__(...)
#define __shared__ static
#define CRIA_DYNAMIC_SHARED(name) float * const name = cria_emulation::block.shared.data()
#define CRIA_LAUNCH(kernel, grid, threads, shared_bytes, ...) \
    cria_emulation::launch(grid, threads, shared_bytes, [&] { kernel(__VA_ARGS__); })

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cria_emulation {

constexpr unsigned kWarpSize = 32, kStackBytes = 128 << 10;

// Threads that must all arrive before any goes on.
struct Barrier {
    unsigned expected = 0, arrived = 0, generation = 0;
    bool any = false, result = false;
};

struct Fiber {
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    ucontext_t entry;
    jmp_buf where;
    bool started = false, done = false;
};

struct Block {
    std::vector<float> shared;
    std::vector<Fiber> fibers;
    std::vector<Barrier> warps;
    Barrier all;
    std::vector<float> lanes;  // the value that each thread offers in a shuffle
    std::function<void()> kernel;
    jmp_buf scheduler;
    unsigned current = 0;
    bool progress = false;
};

inline Block block;
inline std::mutex one_launch;

inline void give_way() {
    if (_setjmp(block.fibers[block.current].where) == 0) _longjmp(block.scheduler, 1);
}

inline bool wait_at(Barrier & barrier, bool value) {
    barrier.any = barrier.any || value;
    const unsigned generation = barrier.generation;
    if (++barrier.arrived == barrier.expected) {
        barrier.arrived = 0;
        barrier.generation++;
        barrier.result = barrier.any;
        barrier.any = false;
        block.progress = true;
    }
    while (barrier.generation == generation) give_way();
    return barrier.result;
}

inline void start_fiber() {
    block.kernel();
    block.fibers[block.current].done = true;
    block.progress = true;
    _longjmp(block.scheduler, 1);
}

inline void resume(unsigned index) {
    Fiber & fiber = block.fibers[index];
    block.current = index;
    threadIdx = dim3(index);
    if (_setjmp(block.scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.where, 1);
    fiber.started = true;
    block.progress = true;
    getcontext(&fiber.entry);
    fiber.entry.uc_stack.ss_sp = fiber.stack.get();
    fiber.entry.uc_stack.ss_size = kStackBytes;
    fiber.entry.uc_link = nullptr;
    makecontext(&fiber.entry, start_fiber, 0);
    setcontext(&fiber.entry);
}

inline void run_block(unsigned threads, bool reverse) {
    std::fill(block.shared.begin(), block.shared.end(), std::numeric_limits<float>::quiet_NaN());
    for (Fiber & fiber : block.fibers) fiber.started = fiber.done = false;
    block.all = Barrier{threads};
    block.warps.assign((threads + kWarpSize - 1) / kWarpSize, Barrier{});
    for (unsigned i = 0; i < threads; i++) block.warps[i / kWarpSize].expected++;
    for (unsigned left = threads; left > 0;) {
        block.progress = false;
        left = 0;
        for (unsigned i = 0; i < threads; i++) {
            const unsigned index = reverse ? threads - 1 - i : i;
            if (!block.fibers[index].done) resume(index);
            left += !block.fibers[index].done;
        }
        if (!block.progress && left > 0) {
            std::fprintf(stderr, "a barrier that %u of %u threads never reach\n", threads - left, threads);
            std::abort();
        }
    }
}

template <class Kernel>
void launch(dim3 grid, unsigned threads, size_t shared_bytes, Kernel kernel) {
    const std::lock_guard<std::mutex> lock(one_launch);
    const char * order = std::getenv("CRIA_EMULATION_ORDER");
    const bool reverse = order && std::strcmp(order, "reverse") == 0;
    block.shared.resize(shared_bytes / sizeof(float));
    block.fibers.resize(threads);
    block.lanes.resize(threads);
    block.kernel = kernel;
    gridDim = grid;
    blockDim = dim3(threads);
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block(threads, reverse);
            }
        }
    }
}

// An H100's, unless CRIA_EMULATION_SHARED says otherwise.
inline int most_shared_bytes() {
    const char * bytes = std::getenv("CRIA_EMULATION_SHARED");
    return bytes ? std::atoi(bytes) : 227 << 10;
}

inline Barrier & this_warp() { return block.warps[block.current / kWarpSize]; }

}  // namespace cria_emulation

inline void __syncthreads() { cria_emulation::wait_at(cria_emulation::block.all, false); }
inline int __syncthreads_or(int value) { return cria_emulation::wait_at(cria_emulation::block.all, value != 0); }
inline void __syncwarp() { cria_emulation::wait_at(cria_emulation::this_warp(), false); }

inline float __shfl_xor_sync(unsigned, float value, int lane_mask) {
    auto & lanes = cria_emulation::block.lanes;
    const unsigned me = cria_emulation::block.current;
    lanes[me] = value;
    __syncwarp();
    const float other = lanes[me ^ unsigned(lane_mask)];
    __syncwarp();
    return other;
}

inline float half_bits_to_float(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                       : exponent == 0 ? ldexpf(float(mantissa), -24)
                                       : ldexpf(float(1024 + mantissa), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }

// Products of a tile: lane l of a warp has half a row of the sum, row l / 2, eight columns from 8 (l % 2). Input tiles
// hold the values that this lane needs.
namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}  // namespace precision
enum layout_t { mem_row_major, mem_col_major };

inline float __float_to_tf32(float x) {
#ifdef CRIA_EMULATION_EXACT
    return x;
#else
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits >> 23 & 255) != 255) bits = (bits + 0x1000) & ~0x1fffu;
    std::memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

inline unsigned lane() { return cria_emulation::block.current % cria_emulation::kWarpSize; }
inline unsigned my_row() { return lane() / 2; }
inline unsigned my_column() { return lane() % 2 * 8; }

// Tiles are loaded from shared memory at multiples of 32 bytes, rows a multiple of 16 bytes apart.
inline void check_tile(const float * p, unsigned ld) {
    if ((p - cria_emulation::block.shared.data()) % 8 == 0 && ld % 4 == 0) return;
    std::fprintf(stderr, "a tile that is not aligned\n");
    std::abort();
}

template <class Use, int M, int N, int K, class Type, class Layout = void>
struct fragment;

template <int M, int N, int K, class Layout>
struct fragment<matrix_a, M, N, K, precision::tf32, Layout> {
    float x[K];
};
template <int M, int N, int K, class Layout>
struct fragment<matrix_b, M, N, K, precision::tf32, Layout> {
    float x[K][8];
};
template <int M, int N, int K>
struct fragment<accumulator, M, N, K, float, void> {
    static constexpr int num_elements = 8;
    float x[8];
};

template <int M, int N, int K, class Layout>
void load_matrix_sync(fragment<matrix_a, M, N, K, precision::tf32, Layout> & a, const float * p, unsigned ld) {
    check_tile(p, ld);
    constexpr bool by_row = std::is_same_v<Layout, row_major>;
    for (int k = 0; k < K; k++) a.x[k] = by_row ? p[my_row() * ld + k] : p[k * ld + my_row()];
}

template <int M, int N, int K, class Layout>
void load_matrix_sync(fragment<matrix_b, M, N, K, precision::tf32, Layout> & b, const float * p, unsigned ld) {
    check_tile(p, ld);
    constexpr bool by_row = std::is_same_v<Layout, row_major>;
    for (int k = 0; k < K; k++) {
        for (unsigned j = 0; j < 8; j++)
            b.x[k][j] = by_row ? p[k * ld + my_column() + j] : p[(my_column() + j) * ld + k];
    }
}

template <class Sum>
void fill_fragment(Sum & sum, float value) {
    for (float & x : sum.x) x = value;
}

template <class A, class B, class Sum>
void mma_sync(Sum & d, const A & a, const B & b, const Sum & c) {
    for (int j = 0; j < 8; j++) {
        float sum = c.x[j];
        for (size_t k = 0; k < sizeof a.x / sizeof a.x[0]; k++) sum += a.x[k] * b.x[k][j];
        d.x[j] = sum;
    }
}

template <class Sum>
void store_matrix_sync(float * p, const Sum & sum, unsigned ld, layout_t) {
    for (unsigned j = 0; j < 8; j++) p[my_row() * ld + my_column() + j] = sum.x[j];
}

}  // namespace nvcuda::wmma

// The part of CUDA's runtime that the kernels' host code calls: device memory is ordinary memory.
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

inline const char * cudaGetErrorString(cudaError_t error) { return error ? "invalid argument" : "no error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
constexpr int cudaStreamPerThread = 0;
inline cudaError_t cudaStreamSynchronize(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int * value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrComputeCapabilityMajor:
            *value = 8;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = 4;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = cria_emulation::most_shared_bytes();
            break;
    }
    return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int bytes) {
    return bytes <= cria_emulation::most_shared_bytes() ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaMalloc(void ** memory, size_t bytes) {
    *memory = std::malloc(bytes);
    return cudaSuccess;
}
inline cudaError_t cudaFree(void * memory) {
    std::free(memory);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void * to, const void * from, size_t bytes, cudaMemcpyKind) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
