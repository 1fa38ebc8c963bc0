// Attention, backward: recomputes the probabilities from the rows' log-sums, block by block. With P the probabilities
// and delta_i = out_i . d_out_i:  dV = P^T dO,  dS = scale P (dO V^T - delta),  dQ = dS K,  dK = dS^T Q.
#include <algorithm>

#include "attention_tiles.cuh"

namespace cria_cuda {

namespace {

__global__ void __launch_bounds__(kAttentionThreads)
    delta_kernel(cria_attention t, cria_attention_gradients g, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * kAttentionThreads + threadIdx.x;
    if (i >= count) return;
    const int64_t token = i / t.heads, head = i % t.heads;
    const float * out = t.out + token * t.out_step + head * t.head_size;
    const float * d_out = g.d_out + token * g.d_out_step + head * t.head_size;
    float sum = 0.0f;
    for (int d = 0; d < t.head_size; d++) sum += out[d] * d_out[d];
    g.delta[token * g.delta_step + head] = sum;
}

// Values of a query that the gradient of its scores needs.
struct QueryRow {
    float log_sum, delta;
};

__device__ __forceinline__ QueryRow read_query_row(
    const cria_attention & t, const cria_attention_gradients & g, int64_t base, int query, int head) {
    if (query >= t.row_length) return {0.0f, 0.0f};
    return {t.log_sums[(base + query) * t.log_sums_step + head], g.delta[(base + query) * g.delta_step + head]};
}

__device__ __forceinline__ float probability(
    const cria_attention & t, const QueryRow & row, int query, int key, int key_end, float score) {
    return sees(query, key, key_end) ? expf(t.scale * score - row.log_sum) : 0.0f;
}

constexpr int kQueryScoreRow = kPass + 4;

template <int D>
constexpr size_t kQueryBytes = sizeof(float) * ((2 * kOwn + 2 * kPass) * kHeadRow<D> + 2 * kOwn * kQueryScoreRow);

// dQ: a block has 64 queries of one head, each warp 16 of them, and loops over the keys.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads) query_kernel(cria_attention t, cria_attention_gradients g) {
    CRIA_DYNAMIC_SHARED(shared);
    float * const queries = shared;
    float * const d_outs = queries + kOwn * kHeadRow<D>;
    float * const keys = d_outs + kOwn * kHeadRow<D>;
    float * const values = keys + kPass * kHeadRow<D>;
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    float * const scores = values + kPass * kHeadRow<D> + warp * 2 * kTile * kQueryScoreRow;
    float * const d_probs = scores + kTile * kQueryScoreRow;

    const int head = blockIdx.y, kv = head / (t.heads / t.kv_heads), first = blockIdx.x * kOwn,
              own = first + warp * kTile;
    const int64_t base = int64_t(blockIdx.z) * t.row_length;
    const int row = lane / 2, query = own + row;
    const QueryRow own_row = read_query_row(t, g, base, query, head);
    __shared__ int ends[kPass];  // of the tile's keys
    load_tile<D, kOwn>(queries, t.q + head * t.head_size, t.q_step, t.head_size, base, first, t.row_length);
    load_tile<D, kOwn>(d_outs, g.d_out + head * t.head_size, g.d_out_step, t.head_size, base, first, t.row_length);

    OwnRows<D> d_q;
    d_q.clear();
    const int key_end = min(first + kOwn, t.row_length);
    for (int key = 0; key < key_end; key += kPass) {
        if (!begin_tile(t, base, key, first, ends)) continue;
        load_tile<D, kPass>(keys, t.k + kv * t.head_size, t.k_step, t.head_size, base, key, t.row_length);
        load_tile<D, kPass>(values, t.v + kv * t.head_size, t.v_step, t.head_size, base, key, t.row_length);
        __syncthreads();
        multiply_rows<D, kPass>(queries + warp * kTile * kHeadRow<D>, keys, scores, kQueryScoreRow);
        multiply_rows<D, kPass>(d_outs + warp * kTile * kHeadRow<D>, values, d_probs, kQueryScoreRow);
        __syncwarp();
        for (int j = lane % 2; j < kPass; j += 2) {
            const int at = row * kQueryScoreRow + j;
            const float p = probability(t, own_row, query, key + j, ends[j], scores[at]);
            scores[at] = to_tf32(t.scale * p * (d_probs[at] - own_row.delta));
        }
        __syncwarp();
        d_q.template add<kPass, RowMajor>(scores, kQueryScoreRow, keys);
    }
    __syncthreads();
    d_q.write(queries + warp * kTile * kHeadRow<D>, g.d_q + head * t.head_size, g.d_q_step, t.head_size, base, own,
        t.row_length);
}

constexpr int kKeyScoreRow = kOwn + 4;

template <int D>
constexpr size_t kKeyBytes = sizeof(float) * ((2 * kOwn + 2 * kPass) * kHeadRow<D> + 2 * kPass * kKeyScoreRow);

// dK and dV: a block has 64 keys of one KV head, each warp 16 of them, and loops over the queries of all its query
// heads.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads) key_kernel(cria_attention t, cria_attention_gradients g) {
    CRIA_DYNAMIC_SHARED(shared);
    float * const keys = shared;
    float * const values = keys + kOwn * kHeadRow<D>;
    float * const queries = values + kOwn * kHeadRow<D>;
    float * const d_outs = queries + kPass * kHeadRow<D>;
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    // In the block's scores [queries, keys], the warp writes and reads only its own 16 columns.
    float * const scores = d_outs + kPass * kHeadRow<D> + warp * kTile;
    float * const d_probs = scores + kPass * kKeyScoreRow;

    const int kv = blockIdx.y, group = t.heads / t.kv_heads, first = blockIdx.x * kOwn, own = first + warp * kTile;
    const int64_t base = int64_t(blockIdx.z) * t.row_length;
    load_tile<D, kOwn>(keys, t.k + kv * t.head_size, t.k_step, t.head_size, base, first, t.row_length);
    load_tile<D, kOwn>(values, t.v + kv * t.head_size, t.v_step, t.head_size, base, first, t.row_length);
    __shared__ int ends[kOwn];  // of the block's keys
    const int my_key = first + int(threadIdx.x), my_end = threadIdx.x < kOwn ? read_end(t, base, my_key) : 0;
    if (threadIdx.x < kOwn) ends[threadIdx.x] = my_end;

    OwnRows<D> d_k, d_v;
    d_k.clear();
    d_v.clear();
    for (int head = kv * group; head < (kv + 1) * group; head++) {
        // Queries before the keys see none of them.
        for (int pass = first / kPass * kPass; pass < t.row_length; pass += kPass) {
            // Each lane has one query of the pass, with all of the warp's keys.
            const int query = pass + lane;
            const QueryRow its_row = read_query_row(t, g, base, query, head);
            if (!__syncthreads_or(is_seen(my_key, my_end, pass, kPass))) continue;
            load_tile<D, kPass>(queries, t.q + head * t.head_size, t.q_step, t.head_size, base, pass, t.row_length);
            load_tile<D, kPass>(
                d_outs, g.d_out + head * t.head_size, g.d_out_step, t.head_size, base, pass, t.row_length);
            __syncthreads();
            for (int part = 0; part < kPass; part += kTile) {
                multiply_rows<D, kTile>(queries + part * kHeadRow<D>, keys + warp * kTile * kHeadRow<D>,
                    scores + part * kKeyScoreRow, kKeyScoreRow);
                multiply_rows<D, kTile>(d_outs + part * kHeadRow<D>, values + warp * kTile * kHeadRow<D>,
                    d_probs + part * kKeyScoreRow, kKeyScoreRow);
            }
            __syncwarp();
            for (int j = 0; j < kTile; j++) {
                const int at = lane * kKeyScoreRow + j;
                const float p = probability(t, its_row, query, own + j, ends[warp * kTile + j], scores[at]);
                scores[at] = to_tf32(p);
                d_probs[at] = to_tf32(t.scale * p * (d_probs[at] - its_row.delta));
            }
            __syncwarp();
            d_v.template add<kPass, ColumnMajor>(scores, kKeyScoreRow, d_outs);
            d_k.template add<kPass, ColumnMajor>(d_probs, kKeyScoreRow, queries);
        }
    }
    __syncthreads();
    d_k.write(
        keys + warp * kTile * kHeadRow<D>, g.d_k + kv * t.head_size, g.d_k_step, t.head_size, base, own, t.row_length);
    d_v.write(values + warp * kTile * kHeadRow<D>, g.d_v + kv * t.head_size, g.d_v_step, t.head_size, base, own,
        t.row_length);
}

struct Backward {
    const cria_attention & t;
    const cria_attention_gradients & g;
    template <int D>
    const char * run() const {
        if (const char * error = allow_shared(query_kernel<D>, kQueryBytes<D>)) return error;
        if (const char * error = allow_shared(key_kernel<D>, kKeyBytes<D>)) return error;
        const int64_t count = int64_t(t.rows) * t.row_length * t.heads;
        CRIA_LAUNCH(delta_kernel, divide_up(count, kAttentionThreads), kAttentionThreads, 0, t, g, count);
        const dim3 queries(divide_up(t.row_length, kOwn), t.heads, t.rows),
            keys(divide_up(t.row_length, kOwn), t.kv_heads, t.rows);
        CRIA_LAUNCH(query_kernel<D>, queries, kAttentionThreads, kQueryBytes<D>, t, g);
        CRIA_LAUNCH(key_kernel<D>, keys, kAttentionThreads, kKeyBytes<D>, t, g);
        return launch_error();
    }
};

// The backward kernels need more shared memory than the forward one. The ends of kOwn keys come on top of the requested
// bytes.
template <int D>
bool fits() {
    return std::max(kQueryBytes<D>, kKeyBytes<D>) + kOwn * sizeof(int) <= size_t(most_shared_bytes());
}

}  // namespace

}  // namespace cria_cuda

extern "C" int32_t cria_kernels_attention_head_size(void) {
    using cria_cuda::fits;
    return fits<128>() ? 128 : fits<96>() ? 96 : fits<64>() ? 64 : fits<32>() ? 32 : 0;
}

extern "C" const char * cria_attention_backward(
    const cria_attention * attention, const cria_attention_gradients * gradients) {
    return cria_cuda::with_head_width(attention->head_size, cria_cuda::Backward{*attention, *gradients});
}
