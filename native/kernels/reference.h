// Each kernel of cria_kernels.h on the CPU, in plain loops and double precision, on host memory. Checks compare with
// it.
#pragma once

#include "cria_kernels.h"

namespace cria_reference {

void logprobs(const cria_logit_rows & rows, float * logprobs, float * entropy);
void logit_gradient(const cria_logit_rows & rows, const float * d_logprobs, const float * d_entropy);

// `weight` is [outputs][inputs], as floats; `product.weight` and `product.type` are not read.
void run_transposed_product(const cria_transposed_product & product, const float * weight);

void run_attention(const cria_attention & attention);
// Does not read out and log_sums: it recomputes the probabilities.
void run_attention_backward(const cria_attention & attention, const cria_attention_gradients & gradients);

}  // namespace cria_reference
