// Defaults of a scheduler's options: fixed rules by the model's shape and its device.
#pragma once

#include "cria/model.h"
#include "cria/scheduler.h"

namespace cria {

// The model's training context, at most 4096: the KV cache of all slots is allocated when the model loads.
int default_context_size(int training_context);

// Yes where keys and values are quantised, which nothing else reads, and on a GPU for a model that only generates, with
// F16 keys and values of a size that the device's kernels have. No on the CPU, where our own attention takes its place;
// no for a model that is trained, whose sampler must agree with the trainer.
bool choose_flash_attention(bool on_cpu, bool trainable, const std::string & kv_type, int head_size);

SchedulerOptions fill_defaults(const Model & model, SchedulerOptions options);

}  // namespace cria
