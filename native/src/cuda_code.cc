#include "cuda_code.h"

#ifdef __linux__

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "system/shared_library.h"

namespace cria {

namespace {

// A file's bytes, mapped.
class MappedFile {
   public:
    explicit MappedFile(const std::string & path) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        struct stat status;
        if (fstat(file, &status) == 0 && status.st_size > 0) {
            void * memory = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
            if (memory != MAP_FAILED) {
                data_ = static_cast<const char *>(memory);
                size_ = size_t(status.st_size);
            }
        }
        close(file);
    }
    ~MappedFile() {
        if (data_) munmap(const_cast<char *>(data_), size_);
    }
    MappedFile(const MappedFile &) = delete;
    MappedFile & operator=(const MappedFile &) = delete;
    // Null when that many bytes are not there.
    const char * at(size_t offset, size_t bytes) const {
        return offset <= size_ && bytes <= size_ - offset ? data_ + offset : nullptr;
    }

   private:
    const char * data_ = nullptr;
    size_t size_ = 0;
};

// The first module of a library (nvcc puts one for each source file into its section .nv_fatbin); null: none.
const void * find_first_module(const MappedFile & file) {
    const auto * header = reinterpret_cast<const Elf64_Ehdr *>(file.at(0, sizeof(Elf64_Ehdr)));
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return nullptr;
    const auto * sections =
        reinterpret_cast<const Elf64_Shdr *>(file.at(header->e_shoff, size_t(header->e_shnum) * sizeof(Elf64_Shdr)));
    if (!sections || header->e_shstrndx >= header->e_shnum) return nullptr;
    constexpr char kName[] = ".nv_fatbin";
    for (size_t i = 0; i < header->e_shnum; i++) {
        const char * name = file.at(sections[header->e_shstrndx].sh_offset + sections[i].sh_name, sizeof(kName));
        if (name && std::memcmp(name, kName, sizeof(kName)) == 0)
            return file.at(sections[i].sh_offset, sections[i].sh_size);
    }
    return nullptr;
}

template <class... Arguments>
using Call = int (*)(Arguments...);

template <class Function>
bool find(void * driver, const char * name, Function & function) {
    function = reinterpret_cast<Function>(find_function(driver, name));
    return function != nullptr;
}

// The driver's functions that are needed here, with its own names (CUDA Driver API, Module Management).
struct Driver {
    Call<int *, int> cuDeviceGet;
    Call<void **, int> cuDevicePrimaryCtxRetain;
    Call<int> cuDevicePrimaryCtxRelease;
    Call<void *> cuCtxPushCurrent;
    Call<void **> cuCtxPopCurrent;
    Call<void **, const void *> cuModuleLoadData;
    Call<void *> cuModuleUnload;
    Call<void **, unsigned, void *> cuModuleEnumerateFunctions;
    Call<void *> cuFuncLoad;
    Call<int, const char **> cuGetErrorName;

    bool load(void * driver) {
        return find(driver, "cuDeviceGet", cuDeviceGet) &&
               find(driver, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain) &&
               find(driver, "cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease) &&
               find(driver, "cuCtxPushCurrent_v2", cuCtxPushCurrent) &&
               find(driver, "cuCtxPopCurrent_v2", cuCtxPopCurrent) &&
               find(driver, "cuModuleLoadData", cuModuleLoadData) && find(driver, "cuModuleUnload", cuModuleUnload) &&
               find(driver, "cuModuleEnumerateFunctions", cuModuleEnumerateFunctions) &&
               find(driver, "cuFuncLoad", cuFuncLoad) && find(driver, "cuGetErrorName", cuGetErrorName);
    }
};

// The driver's error code; 0: the device takes the module.
int load_module(const Driver & driver, int index, const void * image) {
    int device = 0;
    void * context = nullptr;
    if (const int error = driver.cuDeviceGet(&device, index)) return error;
    if (const int error = driver.cuDevicePrimaryCtxRetain(&context, device)) return error;
    int error = driver.cuCtxPushCurrent(context);
    if (error == 0) {
        void *module = nullptr, *function = nullptr;
        error = driver.cuModuleLoadData(&module, image);
        if (error == 0) {
            // Drivers load lazily: a function must be asked for.
            error = driver.cuModuleEnumerateFunctions(&function, 1, module);
            if (error == 0 && function) error = driver.cuFuncLoad(function);
            driver.cuModuleUnload(module);
        }
        driver.cuCtxPopCurrent(&context);
    }
    driver.cuDevicePrimaryCtxRelease(device);
    return error;
}

}  // namespace

std::string try_cuda_code(void * handle, const std::string & library, int devices) {
    Driver driver;
    if (!handle || !driver.load(handle)) return "the driver lacks functions of CUDA 13.0";
    const MappedFile file(library);
    const void * image = find_first_module(file);
    if (!image) return "no kernels in " + library;
    for (int index = 0; index < devices; index++) {
        const int error = load_module(driver, index, image);
        if (error == 0) continue;
        const char * name = nullptr;
        if (driver.cuGetErrorName(error, &name) != 0 || !name) name = "an error";
        return "device " + std::to_string(index) + " does not take it: " + name + " (" + std::to_string(error) + ")";
    }
    return "";
}

}  // namespace cria

#else

namespace cria {

std::string try_cuda_code(void *, const std::string & library, int) {
    return "only on Linux is it known how to find the kernels in " + library;
}

}  // namespace cria

#endif
