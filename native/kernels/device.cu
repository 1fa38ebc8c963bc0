// Selects the device and waits for it.
#include "cria_kernels.h"
#include "platform.cuh"

namespace {

int multiprocessors = 0, shared_bytes = 0;

const char * words(cudaError_t error) { return error == cudaSuccess ? nullptr : cudaGetErrorString(error); }

}  // namespace

int cria_cuda::most_shared_bytes() { return shared_bytes; }

extern "C" int32_t cria_kernels_version(void) { return CRIA_KERNELS_VERSION; }

extern "C" const char * cria_kernels_start(int32_t device) {
    int major = 0;
    if (const char * error = words(cudaSetDevice(device))) return error;
    if (const char * error = words(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)))
        return error;
    if (major < 8) return "the kernels need a GPU of compute capability 8.0 or newer";
    // 163 KiB and more on A100 and H100; 99 KiB on GPUs of 8.6, 8.9 and 12.0.
    if (const char * error =
            words(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)))
        return error;
    return words(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
}

extern "C" int32_t cria_kernels_multiprocessors(void) { return multiprocessors; }

extern "C" const char * cria_kernels_wait(void) { return words(cudaStreamSynchronize(cudaStreamPerThread)); }
