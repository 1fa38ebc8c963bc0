// The inner tile of a matrix product, written once with vector extensions and compiled once for each instruction set.
// The including file defines CRIA_KERNEL_WIDTH (floats a register), CRIA_KERNEL_ROWS, CRIA_KERNEL_VECTORS and
// CRIA_KERNEL_NAME. Rows x vectors accumulators, plus a few registers, must fit into the register file.
#include "cpu/gemm.h"

namespace cria {

namespace {

typedef float Vec __attribute__((vector_size(CRIA_KERNEL_WIDTH * sizeof(float)), aligned(sizeof(float))));

constexpr int kRows = CRIA_KERNEL_ROWS, kVectors = CRIA_KERNEL_VECTORS, kColumns = kVectors * CRIA_KERNEL_WIDTH;

// c[i, j] (+)= sum_p a[i * a_row + p * a_step] b[p * kColumns + j]
void run_tile(int64_t k, const float * a, int64_t a_row, int64_t a_step, const float * b, float * c, int64_t c_row, bool accumulate) {
    Vec sums[kRows][kVectors] = {};
    for (int64_t p = 0; p < k; p++, a += a_step, b += kColumns) {
        Vec column[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++) column[v] = *reinterpret_cast<const Vec *>(b + v * CRIA_KERNEL_WIDTH);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; i++) {
            const float value = a[i * a_row];
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; v++) sums[i][v] += value * column[v];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i++) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++) {
            Vec * out = reinterpret_cast<Vec *>(c + i * c_row + v * CRIA_KERNEL_WIDTH);
            *out = accumulate ? *out + sums[i][v] : sums[i][v];
        }
    }
}

}  // namespace

const GemmKernel CRIA_KERNEL_NAME = {kRows, kColumns, run_tile};

}  // namespace cria
