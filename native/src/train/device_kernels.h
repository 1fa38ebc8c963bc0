// Our own kernels for devices other than the CPU (native/kernels), in a library that is loaded when such a device
// trains.
#pragma once

#include <memory>
#include <string>

#include "../kernels/cria_kernels.h"

namespace cria {

class DeviceKernels {
   public:
    // Null, with the reason in `problem`, when the library does not exist, has another version, or does not run on the
    // device.
    static std::unique_ptr<DeviceKernels> load(const std::string & path, int device, std::string & problem);

    int multiprocessors() const { return multiprocessors_; }
    // The largest head size of the attention kernels on this device.
    int attention_head_size() const { return attention_head_size_; }
    // Makes the device current for this thread. Throws Error("compute-failed"), as the other calls do.
    void enter() const;
    void wait() const;
    void logprobs(const cria_logit_rows & rows, float * logprobs, float * entropy) const;
    void logit_gradient(const cria_logit_rows & rows, const float * d_logprobs, const float * d_entropy) const;
    void run_transposed_product(const cria_transposed_product & product) const;
    void run_attention(const cria_attention & attention) const;
    void run_attention_backward(const cria_attention & attention, const cria_attention_gradients & gradients) const;

   private:
    DeviceKernels() = default;
    int device_ = 0, multiprocessors_ = 1, attention_head_size_ = 0;
    decltype(&cria_kernels_start) start_ = nullptr;
    decltype(&cria_kernels_wait) wait_ = nullptr;
    decltype(&cria_logprobs) logprobs_ = nullptr;
    decltype(&cria_logit_gradient) logit_gradient_ = nullptr;
    decltype(&cria_multiply_transposed) multiply_transposed_ = nullptr;
    decltype(&cria_attention_forward) attention_forward_ = nullptr;
    decltype(&cria_attention_backward) attention_backward_ = nullptr;
};

}  // namespace cria
