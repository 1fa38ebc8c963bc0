// dX = dY W with W as it is stored, in any of ggml's types: the gradient of a frozen or trained linear layer's input.
// Blocks of W are dequantized on their way into shared memory, so that no F32 copy and no transposed copy of W is ever
// made.
//
// C [M, N] = A [M, K] B [K, N]  with M tokens, N inputs, K outputs; B's rows are W's rows.
#include <stdint.h>
#include <string.h>

#include "cria_kernels.h"
#include "dequantize.cuh"
#include "platform.cuh"

namespace cria_cuda {

namespace {

// A block computes 128 x 128, in steps of 32; its eight warps 64 x 32 each.
constexpr int kM = 128, kN = 128, kK = 32, kThreads = 256;
constexpr int kWarpM = 64, kWarpN = 32, kTilesM = kWarpM / kTile, kTilesN = kWarpN / kTile;
// Rows in shared memory are four floats longer: neighbouring rows then begin in other banks.
constexpr int kRowA = kK + 4, kRowB = kN + 4;
constexpr int kSharedA = kM * kRowA, kSharedB = kK * kRowB;
constexpr size_t kSharedBytes = 2 * (kSharedA + kSharedB) * sizeof(float);
constexpr int kRowsOfA = kM * kK / kThreads;  // floats of A that a thread moves each step
constexpr int kEights = kK * kN / 8 / kThreads;  // runs of eight of B

// One step's tiles between global and shared memory: they wait in registers while the previous step is computed.
template <int32_t Type>
struct Staged {
    float a[kRowsOfA], b[kEights][8];

    __device__ __forceinline__ void load(const cria_transposed_product & p, int m0, int n0, int k0, int k_end) {
#pragma unroll
        for (int i = 0; i < kRowsOfA; i++) {
            const int at = threadIdx.x + i * kThreads, m = m0 + at / kK, k = k0 + at % kK;
            a[i] = m < p.tokens && k < k_end ? p.dy[m * p.dy_step + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kEights; i++) {
            const int at = threadIdx.x + i * kThreads, k = k0 + at / (kN / 8), n = n0 + at % (kN / 8) * 8;
            if (n < p.inputs && k < k_end) {
                read_weights<Type>(static_cast<const uint8_t *>(p.weight) + k * p.weight_step, n, b[i]);
            } else {
                for (int j = 0; j < 8; j++) b[i][j] = 0.0f;
            }
        }
    }

    __device__ __forceinline__ void store(float * tile_a, float * tile_b) const {
#pragma unroll
        for (int i = 0; i < kRowsOfA; i++) {
            const int at = threadIdx.x + i * kThreads;
            tile_a[at / kK * kRowA + at % kK] = to_tf32(a[i]);
        }
#pragma unroll
        for (int i = 0; i < kEights; i++) {
            const int at = threadIdx.x + i * kThreads;
            float * row = tile_b + at / (kN / 8) * kRowB + at % (kN / 8) * 8;
            for (int j = 0; j < 8; j++) row[j] = to_tf32(b[i][j]);
        }
    }
};

template <int32_t Type>
__global__ void __launch_bounds__(kThreads) product_kernel(cria_transposed_product p) {
    CRIA_DYNAMIC_SHARED(shared);
    const int m0 = blockIdx.y * kM, n0 = blockIdx.x * kN;
    // This part's share of the sum, in whole steps.
    const int steps_in_all = (p.outputs + kK - 1) / kK, steps_each = (steps_in_all + p.splits - 1) / p.splits;
    const int first_step = blockIdx.z * steps_each, last_step = min(first_step + steps_each, steps_in_all);
    const int k_end = p.outputs;
    const int warp = threadIdx.x / kWarp, warp_m = warp / (kN / kWarpN) * kWarpM,
              warp_n = warp % (kN / kWarpN) * kWarpN;

    TileSum sums[kTilesM][kTilesN];
    for (int i = 0; i < kTilesM; i++) {
        for (int j = 0; j < kTilesN; j++) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
    }
    Staged<Type> staged;
    if (first_step < last_step) {
        staged.load(p, m0, n0, first_step * kK, k_end);
        staged.store(shared, shared + kSharedA);
    }
    __syncthreads();
    for (int step = first_step; step < last_step; step++) {
        const float * tile_a = shared + (step - first_step) % 2 * (kSharedA + kSharedB);
        const float * tile_b = tile_a + kSharedA;
        const bool more = step + 1 < last_step;
        if (more) staged.load(p, m0, n0, (step + 1) * kK, k_end);
#pragma unroll
        for (int k = 0; k < kK; k += kStep) {
            TileA<RowMajor> a[kTilesM];
            TileB<RowMajor> b[kTilesN];
            for (int i = 0; i < kTilesM; i++)
                nvcuda::wmma::load_matrix_sync(a[i], tile_a + (warp_m + i * kTile) * kRowA + k, kRowA);
            for (int j = 0; j < kTilesN; j++)
                nvcuda::wmma::load_matrix_sync(b[j], tile_b + k * kRowB + warp_n + j * kTile, kRowB);
            for (int i = 0; i < kTilesM; i++) {
                for (int j = 0; j < kTilesN; j++) nvcuda::wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
            }
        }
        if (more) {
            // The other half of the shared memory: all threads have finished reading it before the last barrier.
            float * next = shared + (step + 1 - first_step) % 2 * (kSharedA + kSharedB);
            staged.store(next, next + kSharedA);
        }
        __syncthreads();
    }
    // Through shared memory, 16 x 16 a warp at a time: the edge of C need not be a whole tile.
    float * out = shared + warp * kTile * kTile;
    float * dx = p.dx + int64_t(blockIdx.z) * p.tokens * p.inputs;
    for (int i = 0; i < kTilesM; i++) {
        for (int j = 0; j < kTilesN; j++) {
            nvcuda::wmma::store_matrix_sync(out, sums[i][j], kTile, nvcuda::wmma::mem_row_major);
            __syncwarp();
            for (int at = threadIdx.x % kWarp; at < kTile * kTile; at += kWarp) {
                const int m = m0 + warp_m + i * kTile + at / kTile, n = n0 + warp_n + j * kTile + at % kTile;
                if (m < p.tokens && n < p.inputs) dx[int64_t(m) * p.inputs + n] = out[at];
            }
            __syncwarp();
        }
    }
}

// The parts of the sum are added in order, so that the same input gives the same bits.
__global__ void __launch_bounds__(kThreads) add_parts_kernel(float * parts, int64_t count, int splits) {
    const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= count) return;
    float sum = parts[i];
    for (int s = 1; s < splits; s++) sum += parts[s * count + i];
    parts[i] = sum;
}

template <int32_t Type>
const char * run(const cria_transposed_product & p) {
    if (const char * error = allow_shared(product_kernel<Type>, kSharedBytes)) return error;
    const dim3 grid(divide_up(p.inputs, kN), divide_up(p.tokens, kM), p.splits);
    CRIA_LAUNCH(product_kernel<Type>, grid, kThreads, kSharedBytes, p);
    if (p.splits > 1) {
        const int64_t count = int64_t(p.tokens) * p.inputs;
        CRIA_LAUNCH(add_parts_kernel, divide_up(count, kThreads), kThreads, 0, p.dx, count, p.splits);
    }
    return launch_error();
}

}  // namespace

}  // namespace cria_cuda

using namespace cria_cuda;

extern "C" const char * cria_multiply_transposed(const cria_transposed_product * product) {
    const cria_transposed_product & p = *product;
    if (p.inputs % 8 != 0) return "the number of inputs must be a multiple of 8";
    if (p.tokens == 0) return nullptr;
    switch (p.type) {
        case kF32:
            return run<kF32>(p);
        case kF16:
            return run<kF16>(p);
        case kBF16:
            return run<kBF16>(p);
        case kQ4_0:
            return run<kQ4_0>(p);
        case kQ4_1:
            return run<kQ4_1>(p);
        case kQ5_0:
            return run<kQ5_0>(p);
        case kQ5_1:
            return run<kQ5_1>(p);
        case kQ8_0:
            return run<kQ8_0>(p);
        case kQ4_K:
            return run<kQ4_K>(p);
        case kQ5_K:
            return run<kQ5_K>(p);
        case kQ6_K:
            return run<kQ6_K>(p);
        default:
            return "no kernel for this type of weight";
    }
}
