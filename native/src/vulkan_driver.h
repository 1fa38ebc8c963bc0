// The devices that Vulkan's drivers have. ggml leaves out those that are a CPU, and does not say so.
#pragma once

#include <string>

namespace cria {

// Vulkan's loader, by the name that each system gives it.
#if defined(_WIN32)
constexpr const char * kVulkanLoader = "vulkan-1.dll";
#elif defined(__APPLE__)
constexpr const char * kVulkanLoader = "libvulkan.1.dylib";
#else
constexpr const char * kVulkanLoader = "libvulkan.so.1";
#endif

// Names all devices, those that are a CPU marked as such, by the loader, which is loaded. On a failure it is empty, and
// `problem` says why.
std::string name_vulkan_devices(void * loader, std::string & problem);

}  // namespace cria
