// Shared parts of the attention kernels: tiles of queries and keys in shared memory, and visibility. After
// FlashAttention-2 (Dao 2023, arXiv:2307.08691), with two differences. The forward pass goes over the keys twice, first
// for the rows' log-sums, then for the output: nothing is rescaled, and sums stay in the tensor cores' registers. The
// backward pass uses one kernel for the gradients of K and V and one for the gradient of Q instead of atomic additions:
// the same input gives the same bits.
#pragma once

#include <math.h>
#include <stdint.h>

#include <type_traits>

#include "cria_kernels.h"
#include "platform.cuh"

namespace cria_cuda {

constexpr int kAttentionWarps = 4, kAttentionThreads = kAttentionWarps * kWarp;

// A warp owns 16 rows of the side that stays in place: queries (forward, gradient of Q) or keys (gradients of K and V).
// It loops over the other side in tiles of half the size. Heads are padded to D floats with zeros.
constexpr int kOwn = kAttentionWarps * kTile, kPass = 32;

// Rows of a tile are four floats longer than its width: neighbouring rows then begin in other banks.
template <int D>
constexpr int kHeadRow = D + 4;

// rows [first, first + Rows) of one head, of a row of the batch that begins at token `base`; zero behind the row's end.
template <int D, int Rows>
__device__ __forceinline__ void load_tile(
    float * tile, const float * vectors, int64_t step, int head_size, int64_t base, int first, int row_length) {
    for (int at = threadIdx.x; at < Rows * D; at += kAttentionThreads) {
        const int row = at / D, d = at % D;
        const bool inside = first + row < row_length && d < head_size;
        tile[row * kHeadRow<D> + d] = inside ? to_tf32(vectors[(base + first + row) * step + d]) : 0.0f;
    }
}

// No query sees a key behind the row's end.
__device__ __forceinline__ int read_end(const cria_attention & t, int64_t base, int key) {
    return key < t.row_length ? t.ends[base + key] : 0;
}

// See cria_attention.
__device__ __forceinline__ bool sees(int query, int key, int key_end) { return key <= query && query < key_end; }

// Whether any of the queries [first, first + count) sees a key with this end.
__device__ __forceinline__ bool is_seen(int key, int key_end, int first, int count) {
    return key_end > first && key < first + count;
}

// Whether any query of the block that begins at `first` sees a key of the tile that begins at `key`. If so, the tile's
// ends are in shared memory after the next barrier. On return all threads of the block have finished with the previous
// tile.
__device__ __forceinline__ bool begin_tile(const cria_attention & t, int64_t base, int key, int first, int * ends) {
    const int mine = key + int(threadIdx.x), end = threadIdx.x < kPass ? read_end(t, base, mine) : 0;
    if (!__syncthreads_or(is_seen(mine, end, first, kOwn))) return false;
    if (threadIdx.x < kPass) ends[threadIdx.x] = end;
    return true;
}

// out [16, Columns] = a [16, D] b [Columns, D]^T: 16 rows of one tile by all of another.
template <int D, int Columns>
__device__ __forceinline__ void multiply_rows(const float * a, const float * b, float * out, int out_row) {
    for (int column = 0; column < Columns; column += kTile) {
        TileSum sum;
        nvcuda::wmma::fill_fragment(sum, 0.0f);
        for (int k = 0; k < D; k += kStep) {
            TileA<RowMajor> x;
            TileB<ColumnMajor> y;
            nvcuda::wmma::load_matrix_sync(x, a + k, kHeadRow<D>);
            nvcuda::wmma::load_matrix_sync(y, b + column * kHeadRow<D> + k, kHeadRow<D>);
            nvcuda::wmma::mma_sync(sum, x, y, sum);
        }
        nvcuda::wmma::store_matrix_sync(out + column, sum, out_row, nvcuda::wmma::mem_row_major);
    }
}

// Sixteen rows of a result with D columns, kept by one warp.
template <int D>
struct OwnRows {
    TileSum sums[D / kTile];

    __device__ __forceinline__ void clear() {
        for (TileSum & sum : sums) nvcuda::wmma::fill_fragment(sum, 0.0f);
    }
    // += p [16, Count] b [Count, D]; p's layout says whether its rows or its columns lie together.
    template <int Count, class Layout>
    __device__ __forceinline__ void add(const float * p, int p_row, const float * b) {
        constexpr bool by_row = std::is_same_v<Layout, RowMajor>;
        for (int k = 0; k < Count; k += kStep) {
            TileA<Layout> x;
            nvcuda::wmma::load_matrix_sync(x, by_row ? p + k : p + k * p_row, p_row);
            for (int d = 0; d < D / kTile; d++) {
                TileB<RowMajor> y;
                nvcuda::wmma::load_matrix_sync(y, b + k * kHeadRow<D> + d * kTile, kHeadRow<D>);
                nvcuda::wmma::mma_sync(sums[d], x, y, sums[d]);
            }
        }
    }
    // Writes through 16 rows of shared memory that only this warp uses; skips rows behind the end.
    __device__ __forceinline__ void write(
        float * rows, float * vectors, int64_t step, int head_size, int64_t base, int first, int row_length) const {
        for (int d = 0; d < D / kTile; d++)
            nvcuda::wmma::store_matrix_sync(rows + d * kTile, sums[d], kHeadRow<D>, nvcuda::wmma::mem_row_major);
        __syncwarp();
        for (int at = threadIdx.x % kWarp; at < kTile * D; at += kWarp) {
            const int row = at / D, d = at % D;
            if (first + row < row_length && d < head_size)
                vectors[(base + first + row) * step + d] = rows[row * kHeadRow<D> + d];
        }
    }
};

// Calls launch(width) with the smallest compiled width that holds a head.
template <class Launch>
const char * with_head_width(int head_size, Launch launch) {
    if (head_size % 8 != 0 || head_size <= 0) return "the head size must be a multiple of 8";
    if (head_size <= 32) return launch.template run<32>();
    if (head_size <= 64) return launch.template run<64>();
    if (head_size <= 96) return launch.template run<96>();
    if (head_size <= 128) return launch.template run<128>();
    return "heads of more than 128 have no kernel";
}

}  // namespace cria_cuda
