// The devices that Vulkan's drivers have. ggml leaves out those that are a CPU, and does not say so.
#pragma once

#include <string>

namespace cria {

// Names all devices, those that are a CPU marked as such, by the loader libvulkan.so.1 (`loader` is its handle). On a
// failure it is empty, and `problem` says why.
std::string name_vulkan_devices(void * loader, std::string & problem);

}  // namespace cria
