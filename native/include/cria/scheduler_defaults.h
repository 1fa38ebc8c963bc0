// Defaults of a scheduler's options, which depend only on the model's shape and its device.
#pragma once

#include "cria/model.h"
#include "cria/scheduler.h"

namespace cria {

// The model's training context, at most 4096: the KV cache of all slots is allocated when the model loads.
int default_context_size(int training_context);

// On for quantised keys and values, which nothing else reads. On for a model that only generates on a GPU, with F16
// keys and values and a head size that the device's kernels support. Off on the CPU, where our own attention replaces
// it, and for a model that is trained, whose sampler must agree with the trainer.
bool choose_flash_attention(bool on_cpu, bool trainable, const std::string & kv_type, int head_size);

SchedulerOptions fill_defaults(const Model & model, SchedulerOptions options);

}  // namespace cria
