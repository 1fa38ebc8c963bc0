// What the attention kernels share: tiles of queries and keys in shared memory, and who sees whom. After
// FlashAttention-2 (Dao 2023, arXiv:2307.08691), with two differences. The forward pass goes over the keys twice, first
// for the rows' log-sums, then for the output: nothing is rescaled, and sums stay in the tensor cores' registers. The
// backward pass has a kernel for the gradients of K and V and one for that of Q instead of atomic additions: the same
// input gives the same bits.
#pragma once

#include <math.h>
#include <stdint.h>

#include <type_traits>

#include "cria_kernels.h"
#include "platform.cuh"

namespace cria_cuda {

constexpr int kAttentionWarps = 4, kAttentionThreads = kAttentionWarps * kWarp;

// A warp owns 16 rows of the side that stays in place: queries (forward, gradient of Q) or keys (gradients of K and V).
// The other side comes by in tiles of half the size. Heads are filled up to D floats with zeros.
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

// Which keys a query sees; see cria_attention.
struct Sight {
    int prefix, start;
};

__device__ __forceinline__ Sight read_sight(const cria_attention & t, int64_t base, int query) {
    if (query >= t.row_length) return {0, INT32_MAX};
    return {t.prefix[base + query], t.start[base + query]};
}

__device__ __forceinline__ bool sees(const Sight & s, int query, int key) {
    return key < s.prefix || (key >= s.start && key <= query);
}

// Whether any key of [first, first + count) is seen.
__device__ __forceinline__ bool sees_any(const Sight & s, int query, int first, int count) {
    return first < s.prefix || (s.start <= query && s.start < first + count && first <= query);
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
    // Through 16 rows of shared memory that nobody else uses; rows behind the end stay away.
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
