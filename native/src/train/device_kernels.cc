#include "train/device_kernels.h"

#include "cria/error.h"
#include "system/shared_library.h"

namespace cria {

namespace {

void check_call(const char * error, const char * kernel) {
    if (error)
        throw Error("compute-failed", "a kernel could not be run")
            .subject(kernel)
            .received(error)
            .remedy("train on the CPU (device \"cpu\")");
}

}  // namespace

std::unique_ptr<DeviceKernels> DeviceKernels::load(const std::string & path, int device, std::string & problem) {
    // Never closed: models that share it are loaded and freed at any time.
    void * library = load_library(path, problem);
    if (!library) return nullptr;
    std::unique_ptr<DeviceKernels> k(new DeviceKernels());
    const auto find = [&](auto & function, const char * name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(find_function(library, name));
        if (!function && problem.empty()) problem = path + " lacks " + name;
    };
    decltype(&cria_kernels_version) version = nullptr;
    decltype(&cria_kernels_multiprocessors) multiprocessors = nullptr;
    find(version, "cria_kernels_version");
    decltype(&cria_kernels_attention_head_size) attention_head_size = nullptr;
    find(multiprocessors, "cria_kernels_multiprocessors");
    find(attention_head_size, "cria_kernels_attention_head_size");
    find(k->start_, "cria_kernels_start");
    find(k->wait_, "cria_kernels_wait");
    find(k->logprobs_, "cria_logprobs");
    find(k->logit_gradient_, "cria_logit_gradient");
    find(k->multiply_transposed_, "cria_multiply_transposed");
    find(k->attention_forward_, "cria_attention_forward");
    find(k->attention_backward_, "cria_attention_backward");
    if (problem.empty() && version() != CRIA_KERNELS_VERSION) problem = path + " is of another version";
    if (problem.empty()) {
        if (const char * error = k->start_(device)) problem = error;
    }
    if (!problem.empty()) return nullptr;
    k->device_ = device;
    k->multiprocessors_ = multiprocessors();
    k->attention_head_size_ = attention_head_size();
    return k;
}

void DeviceKernels::enter() const { check_call(start_(device_), "start"); }
void DeviceKernels::wait() const { check_call(wait_(), "wait"); }

void DeviceKernels::logprobs(const cria_logit_rows & rows, float * logprobs, float * entropy) const {
    check_call(logprobs_(&rows, logprobs, entropy), "logprobs");
}

void DeviceKernels::logit_gradient(
    const cria_logit_rows & rows, const float * d_logprobs, const float * d_entropy) const {
    check_call(logit_gradient_(&rows, d_logprobs, d_entropy), "logit gradient");
}

void DeviceKernels::run_transposed_product(const cria_transposed_product & product) const {
    check_call(multiply_transposed_(&product), "transposed product");
}

void DeviceKernels::run_attention(const cria_attention & attention) const {
    check_call(attention_forward_(&attention), "attention");
}

void DeviceKernels::run_attention_backward(
    const cria_attention & attention, const cria_attention_gradients & gradients) const {
    check_call(attention_backward_(&attention, &gradients), "attention backward");
}

}  // namespace cria
