// Log-softmax, gather of the target, entropy and loss gradient of rows of logits, fused: one read for the statistics,
// one read and write for the gradient, and no second array of a row's size.
//   dz_j = scale [ c (delta_j - p_j) - e p_j (log p_j + H) ]      for c = dLoss/dlogprob, e = dLoss/dentropy
#include <math.h>

#include "cria_kernels.h"
#include "platform.cuh"

namespace cria_cuda {

namespace {

constexpr int kThreads = 256;

// Running sums over the values seen so far: maximum, sum of exp(z - max), sum of (z - max) exp(z - max).
struct RowSums {
    float max, sum, weighted;
};

__device__ __forceinline__ RowSums shift(const RowSums & a, float max) {
    if (a.sum == 0.0f) return {max, 0.0f, 0.0f};
    const float down = a.max - max, factor = expf(down);
    return {max, a.sum * factor, (a.weighted + a.sum * down) * factor};
}

__device__ __forceinline__ RowSums join(const RowSums & a, const RowSums & b) {
    const float max = fmaxf(a.max, b.max);
    const RowSums x = shift(a, max), y = shift(b, max);
    return {max, x.sum + y.sum, x.weighted + y.weighted};
}

__device__ __forceinline__ RowSums exchange(const RowSums & a, int lane_mask) {
    return {__shfl_xor_sync(0xffffffffu, a.max, lane_mask), __shfl_xor_sync(0xffffffffu, a.sum, lane_mask),
        __shfl_xor_sync(0xffffffffu, a.weighted, lane_mask)};
}

// Returns the same result in every thread of the block.
__device__ RowSums sum_row(const float * z, int count, float scale) {
    __shared__ RowSums warps[kThreads / kWarp];
    RowSums sums{-INFINITY, 0.0f, 0.0f};
    for (int j = threadIdx.x; j < count; j += kThreads) {
        const float value = scale * z[j];
        // An impossible token has no share, and must not become the maximum.
        if (value == -INFINITY) continue;
        if (value > sums.max) sums = shift(sums, value);
        const float below = value - sums.max, e = expf(below);
        sums.sum += e;
        sums.weighted += below * e;
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) sums = join(sums, exchange(sums, mask));
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = sums;
    __syncthreads();
    sums = warps[0];
    for (int i = 1; i < kThreads / kWarp; i++) sums = join(sums, warps[i]);
    return sums;
}

__global__ void __launch_bounds__(kThreads) logprobs_kernel(cria_logit_rows rows, float * logprobs, float * entropy) {
    const int row = blockIdx.x;
    const float * z = rows.logits + row * rows.step;
    const RowSums sums = sum_row(z, rows.vocabulary, rows.scale);
    if (threadIdx.x == 0) {
        const float log_sum = logf(sums.sum);
        logprobs[row] = rows.scale * z[rows.targets[row]] - sums.max - log_sum;
        entropy[row] = log_sum - sums.weighted / sums.sum;
    }
}

__global__ void __launch_bounds__(kThreads)
    gradient_kernel(cria_logit_rows rows, const float * d_logprobs, const float * d_entropy) {
    const int row = blockIdx.x;
    float * z = rows.logits + row * rows.step;
    const RowSums sums = sum_row(z, rows.vocabulary, rows.scale);
    const float log_sum = logf(sums.sum), entropy = log_sum - sums.weighted / sums.sum;
    const float c = d_logprobs[row], e = d_entropy[row];
    const int target = rows.targets[row];
    for (int j = threadIdx.x; j < rows.vocabulary; j += kThreads) {
        const float log_p = rows.scale * z[j] - sums.max - log_sum, p = expf(log_p);
        const float towards = j == target ? c : 0.0f;
        z[j] = rows.scale * (towards - c * p - (p > 0.0f ? e * p * (log_p + entropy) : 0.0f));
    }
}

}  // namespace

}  // namespace cria_cuda

using namespace cria_cuda;

extern "C" const char * cria_logprobs(const cria_logit_rows * rows, float * logprobs, float * entropy) {
    if (rows->rows == 0) return nullptr;
    CRIA_LAUNCH(logprobs_kernel, rows->rows, kThreads, 0, *rows, logprobs, entropy);
    return launch_error();
}

extern "C" const char * cria_logit_gradient(
    const cria_logit_rows * rows, const float * d_logprobs, const float * d_entropy) {
    if (rows->rows == 0) return nullptr;
    CRIA_LAUNCH(gradient_kernel, rows->rows, kThreads, 0, *rows, d_logprobs, d_entropy);
    return launch_error();
}
