// Attention, forward: outputs and the log-sums of their rows, without the S x S matrix.
#include "attention_tiles.cuh"

namespace cria_cuda {

namespace {

constexpr int kScoreRow = kPass + 4;

template <int D>
constexpr size_t kForwardBytes = sizeof(float) * ((kOwn + 2 * kPass) * kHeadRow<D> + kOwn * kScoreRow);

// A block has 64 queries of one head, each warp 16 of them.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads) forward_kernel(cria_attention t) {
    CRIA_DYNAMIC_SHARED(shared);
    float * const queries = shared;
    float * const keys = queries + kOwn * kHeadRow<D>;
    float * const values = keys + kPass * kHeadRow<D>;
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    float * const scores = values + kPass * kHeadRow<D> + warp * kTile * kScoreRow;

    const int head = blockIdx.y, kv = head / (t.heads / t.kv_heads), first = blockIdx.x * kOwn,
              own = first + warp * kTile;
    const int64_t base = int64_t(blockIdx.z) * t.row_length;
    const float * const own_queries = queries + warp * kTile * kHeadRow<D>;
    // Two lanes share a query: each takes every second key.
    const int row = lane / 2, query = own + row;
    __shared__ int ends[kPass];  // of the tile's keys
    load_tile<D, kOwn>(queries, t.q + head * t.head_size, t.q_step, t.head_size, base, first, t.row_length);
    const int key_end = min(first + kOwn, t.row_length);

    // First the log-sums.
    float largest = -INFINITY, sum = 0.0f;
    for (int key = 0; key < key_end; key += kPass) {
        if (!begin_tile(t, base, key, first, ends)) continue;
        load_tile<D, kPass>(keys, t.k + kv * t.head_size, t.k_step, t.head_size, base, key, t.row_length);
        __syncthreads();
        multiply_rows<D, kPass>(own_queries, keys, scores, kScoreRow);
        __syncwarp();
        for (int j = lane % 2; j < kPass; j += 2) {
            if (!sees(query, key + j, ends[j])) continue;
            const float score = t.scale * scores[row * kScoreRow + j];
            if (score > largest) {
                sum *= expf(largest - score);
                largest = score;
            }
            sum += expf(score - largest);
        }
    }
    const float other_largest = __shfl_xor_sync(0xffffffffu, largest, 1),
                other_sum = __shfl_xor_sync(0xffffffffu, sum, 1);
    const float both = fmaxf(largest, other_largest);
    const bool blind = both == -INFINITY;
    const float log_sum =
        blind ? 0.0f : both + logf(sum * expf(largest - both) + other_sum * expf(other_largest - both));
    if (lane % 2 == 0 && query < t.row_length) t.log_sums[(base + query) * t.log_sums_step + head] = log_sum;

    // Then the probabilities, and with them the outputs.
    OwnRows<D> out;
    out.clear();
    for (int key = 0; key < key_end; key += kPass) {
        if (!begin_tile(t, base, key, first, ends)) continue;
        load_tile<D, kPass>(keys, t.k + kv * t.head_size, t.k_step, t.head_size, base, key, t.row_length);
        load_tile<D, kPass>(values, t.v + kv * t.head_size, t.v_step, t.head_size, base, key, t.row_length);
        __syncthreads();
        multiply_rows<D, kPass>(own_queries, keys, scores, kScoreRow);
        __syncwarp();
        for (int j = lane % 2; j < kPass; j += 2) {
            float & score = scores[row * kScoreRow + j];
            score = sees(query, key + j, ends[j]) ? to_tf32(expf(t.scale * score - log_sum)) : 0.0f;
        }
        __syncwarp();
        out.template add<kPass, RowMajor>(scores, kScoreRow, values);
    }
    __syncthreads();
    out.write(queries + warp * kTile * kHeadRow<D>, t.out + head * t.head_size, t.out_step, t.head_size, base, own,
        t.row_length);
}

struct Forward {
    const cria_attention & t;
    template <int D>
    const char * run() const {
        if (const char * error = allow_shared(forward_kernel<D>, kForwardBytes<D>)) return error;
        const dim3 grid(divide_up(t.row_length, kOwn), t.heads, t.rows);
        CRIA_LAUNCH(forward_kernel<D>, grid, kAttentionThreads, kForwardBytes<D>, t);
        return launch_error();
    }
};

}  // namespace

}  // namespace cria_cuda

extern "C" const char * cria_attention_forward(const cria_attention * attention) {
    return cria_cuda::with_head_width(attention->head_size, cria_cuda::Forward{*attention});
}
