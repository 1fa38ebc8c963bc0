// Cria's own CUDA kernels for training, as a C library (libcria-cuda.so) that is loaded only where a GPU trains. Every
// pointer is device memory of floats, every step (between rows or tokens) counts floats. Functions queue work on the
// calling thread's stream and never wait for the device, because another thread may be recording a CUDA graph. They
// return null, or an error message that lives as long as the library. `reference.h` has each of them on the CPU, in
// plain loops.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define CRIA_KERNELS_VERSION 3

int32_t cria_kernels_version(void);

// Call once before all others, for each device: makes it this thread's current device.
const char * cria_kernels_start(int32_t device);

// Number of multiprocessors of the started device.
int32_t cria_kernels_multiprocessors(void);

// The largest head size whose attention fits into a block's shared memory on the started device; 0: none.
int32_t cria_kernels_attention_head_size(void);

// Waits for all work that this thread queued.
const char * cria_kernels_wait(void);

// Rows of logits z; with `scale` (1 / temperature) the distribution of a row is p = softmax(scale z).
typedef struct {
    float * logits;
    int64_t step;
    int32_t rows, vocabulary;
    float scale;
    const int32_t * targets;  // one per row
} cria_logit_rows;

// log p[target] and the entropy of p, in nats, for each row.
const char * cria_logprobs(const cria_logit_rows * rows, float * logprobs, float * entropy);

// Writes over the logits: the gradient of  sum over rows of  d_logprobs log p[target] + d_entropy entropy(p).
const char * cria_logit_gradient(const cria_logit_rows * rows, const float * d_logprobs, const float * d_entropy);

// dX = dY W of a layer y = W x. W is stored as ggml stores it: `outputs` rows of `inputs` values.
typedef struct {
    int32_t type;  // a ggml_type: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K
    int32_t inputs, outputs, tokens;  // inputs: a multiple of 8
    const void * weight;
    int64_t weight_step;  // in bytes, from row to row
    const float * dy;  // [tokens][outputs]
    int64_t dy_step;
    // [splits][tokens][inputs]: the sum over outputs is cut into `splits` parts; the result is in the first
    float * dx;
    int32_t splits;
} cria_transposed_product;

const char * cria_multiply_transposed(const cria_transposed_product * product);

// Causal attention of `rows` rows of `row_length` tokens, in groups of heads / kv_heads query heads for each KV head.
// Token i of a row sees the row's keys j with j <= i < ends[j]; padding, behind all tokens, has the end 0.
// Vectors of head h of token t lie at  base + t * step + h * head_size.
typedef struct {
    int32_t head_size, heads, kv_heads, row_length, rows;  // head_size: a multiple of 8, at most what the device can
    float scale;
    const int32_t * ends;  // [rows * row_length]
    const float *q, *k, *v;
    int64_t q_step, k_step, v_step;
    float *out, *log_sums;  // log_sums: one per token and head, log sum exp(scale q k); 0 where nothing is seen
    int64_t out_step, log_sums_step;
} cria_attention;

// Fills out and log_sums.
const char * cria_attention_forward(const cria_attention * attention);

typedef struct {
    const float * d_out;
    float *d_q, *d_k, *d_v;
    float * delta;  // scratch, one per token and head
    int64_t d_out_step, d_q_step, d_k_step, d_v_step, delta_step;
} cria_attention_gradients;

// Reads out and log_sums; writes every gradient, adds to none. The same input gives the same bits.
const char * cria_attention_backward(const cria_attention * attention, const cria_attention_gradients * gradients);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
