// The parts of CUDA that the kernels use. Other compilers take them from tests/cuda_emulation.h, which runs blocks on
// the CPU.
#pragma once

#ifdef __CUDACC__
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define CRIA_DYNAMIC_SHARED(name) extern __shared__ __align__(128) float name[]
#define CRIA_LAUNCH(kernel, grid, block, shared_bytes, ...) \
    kernel<<<grid, block, shared_bytes, cudaStreamPerThread>>>(__VA_ARGS__)

__device__ __forceinline__ float half_bits_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
#else
#include "cuda_emulation.h"
#endif

namespace cria_cuda {

// 16 x 16 x 8 products of the tensor cores: F32 rounded to TF32 (10 bits of mantissa), added up in F32.
constexpr int kTile = 16, kStep = 8;
using RowMajor = nvcuda::wmma::row_major;
using ColumnMajor = nvcuda::wmma::col_major;
template <class Layout>
using TileA =
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kTile, kTile, kStep, nvcuda::wmma::precision::tf32, Layout>;
template <class Layout>
using TileB =
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kTile, kTile, kStep, nvcuda::wmma::precision::tf32, Layout>;
using TileSum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kStep, float>;

// Values that tiles read are rounded when they are written to shared memory.
__device__ __forceinline__ float to_tf32(float x) { return nvcuda::wmma::__float_to_tf32(x); }

constexpr int kWarp = 32;

inline int divide_up(int64_t a, int64_t b) { return int((a + b - 1) / b); }

// Most bytes of shared memory that a block of the started device may request.
int most_shared_bytes();

// The error of the last launch, or null.
inline const char * launch_error() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// More than 48 KiB of shared memory must be requested.
template <class Kernel>
const char * allow_shared(Kernel kernel, size_t bytes) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace cria_cuda
