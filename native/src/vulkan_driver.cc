#include "vulkan_driver.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "system/shared_library.h"

namespace cria {

namespace {

// Structures of Vulkan 1.0, as far as they are read here: no header of it is needed to build the addon.
struct InstanceInfo {
    uint32_t type = 1;
    const void * next = nullptr;
    uint32_t flags = 0;
    const void * application = nullptr;
    uint32_t layers = 0;
    const char * const * layer_names = nullptr;
    uint32_t extensions = 0;
    const char * const * extension_names = nullptr;
};

struct DeviceProperties {
    uint32_t api, driver, vendor, device, type;
    char name[256];
    // The limits of the device, with room to spare.
    alignas(8) char further[1024];
};

constexpr uint32_t kCpuType = 4;

template <class F>
bool find(void * loader, const char * name, F & function) {
    function = reinterpret_cast<F>(find_function(loader, name));
    return function != nullptr;
}

}  // namespace

std::string name_vulkan_devices(void * loader, std::string & problem) {
    int (*create)(const InstanceInfo *, const void *, void **);
    int (*list)(void *, uint32_t *, void **);
    void (*describe)(void *, DeviceProperties *);
    void (*destroy)(void *, const void *);
    if (!find(loader, "vkCreateInstance", create) || !find(loader, "vkEnumeratePhysicalDevices", list) ||
        !find(loader, "vkGetPhysicalDeviceProperties", describe) || !find(loader, "vkDestroyInstance", destroy)) {
        problem = std::string(kVulkanLoader) + " is not Vulkan's loader";
        return "";
    }
    const InstanceInfo info;
    void * instance = nullptr;
    if (const int error = create(&info, nullptr, &instance)) {
        problem = "no driver starts: vkCreateInstance gives error " + std::to_string(error);
        return "";
    }
    uint32_t count = 0;
    list(instance, &count, nullptr);
    std::vector<void *> devices(count);
    list(instance, &count, devices.data());
    devices.resize(count);
    std::string names;
    for (void * device : devices) {
        DeviceProperties properties{};
        describe(device, &properties);
        names += (names.empty() ? "" : "; ") + std::string(properties.name) +
                 (properties.type == kCpuType ? " (computes on the CPU)" : "");
    }
    destroy(instance, nullptr);
    if (names.empty()) problem = "the drivers name no device";
    return names;
}

}  // namespace cria
