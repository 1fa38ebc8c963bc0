// Which device computes, and waiting for it.
#include "cria_kernels.h"
#include "platform.cuh"

namespace {

int multiprocessors = 0;

const char * words(cudaError_t error) { return error == cudaSuccess ? nullptr : cudaGetErrorString(error); }

}  // namespace

extern "C" int32_t cria_kernels_version(void) { return CRIA_KERNELS_VERSION; }

extern "C" const char * cria_kernels_start(int32_t device) {
    int major = 0;
    if (const char * error = words(cudaSetDevice(device))) return error;
    if (const char * error = words(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)))
        return error;
    if (major < 8) return "the kernels need a GPU of compute capability 8.0 or newer";
    return words(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
}

extern "C" int32_t cria_kernels_multiprocessors(void) { return multiprocessors; }

extern "C" const char * cria_kernels_wait(void) { return words(cudaStreamSynchronize(cudaStreamPerThread)); }
