#include "cria/gguf_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cria/error.h"
#include "cria/runtime.h"
#include "system/files.h"
#include "system/process.h"

namespace cria {

namespace {

Error cannot_read(const std::string & path, const char * code, const std::string & summary) {
    return Error(code, summary).subject(path).expected("a readable GGUF file");
}

// Callers that resolve paths from another folder than the working directory pass absolute paths.
std::string describe_start(const std::string & path) {
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).u8string();
    if (path.empty() || to_path(path).is_absolute() || error) return "check the path";
    return "check the path: a relative one starts at the working directory, " + folder;
}

void check_signature(const std::string & path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(to_path(path), error);
    if (!std::filesystem::exists(status))
        throw cannot_read(path, "file-not-found", error.message()).remedy(describe_start(path));
    if (!std::filesystem::is_regular_file(status)) throw cannot_read(path, "file-not-found", "is not a regular file");
    FilePtr file(open_file(path, "rb"));
    if (!file) throw cannot_read(path, "file-not-found", std::generic_category().message(errno));
    char magic[4] = {};
    const size_t n = std::fread(magic, 1, sizeof magic, file.get());
    file.reset();
    if (n < 4 || std::memcmp(magic, "GGUF", 4) != 0) {
        char shown[64];
        std::snprintf(shown, sizeof shown, "%zu bytes: %02x %02x %02x %02x", n, magic[0] & 255, magic[1] & 255,
            magic[2] & 255, magic[3] & 255);
        throw cannot_read(path, "not-gguf", "is not a GGUF file")
            .expected("the bytes \"GGUF\" at its start")
            .received(shown)
            .remedy("convert the model to GGUF, or check that the download is complete");
    }
}

void add_tensors(gguf_context * gguf, ggml_context * context, const std::vector<GgufTensor> & tensors) {
    for (const auto & tensor : tensors) {
        int64_t ne[GGML_MAX_DIMS] = {1, 1, 1, 1};
        for (size_t i = 0; i < tensor.shape.size() && i < GGML_MAX_DIMS; i++) ne[i] = tensor.shape[i];
        ggml_tensor * t = ggml_new_tensor(context, tensor.type, std::max<int>(1, int(tensor.shape.size())), ne);
        ggml_set_name(t, tensor.name.c_str());
        t->data = const_cast<void *>(tensor.data);
        gguf_add_tensor(gguf, t);
    }
}

std::string suggest_remedy(int error, const char * elsewhere) {
    const bool is_closed = error == EACCES || error == EPERM || error == EROFS;
    const char * first = error == EFBIG ? "raise the limit of file sizes (ulimit -f unlimited)"
                         : is_closed    ? "make the folder writable"
                                        : "free some space";
    return std::string(first) + ", or " + elsewhere;
}

// Removes the partial file.
Error cannot_write(const std::string & temporary, const std::string & path, const char * what, int error) {
    std::error_code ignored;
    std::filesystem::remove(to_path(temporary), ignored);
    return Error("write-failed", std::string(what) + ": " + std::generic_category().message(error))
        .subject(path)
        .expected("a writable folder with room for the file")
        .remedy(suggest_remedy(error, "choose another path") + "; nothing was changed");
}

GgmlPtr tensor_context(size_t count) {
    return GgmlPtr(ggml_init({(count + 1) * ggml_tensor_overhead(), nullptr, true}));
}

}  // namespace

GgufHeader read_gguf(const std::string & path, bool with_data) {
    check_signature(path);
    take_log_errors();
    ggml_context * tensors = nullptr;
    GgufHeader header;
    header.gguf.reset(gguf_init_from_file(path.c_str(), {!with_data, &tensors}));
    header.tensors.reset(tensors);
    if (!header.gguf) {
        throw cannot_read(path, "truncated", "its GGUF header cannot be read")
            .received(take_log_errors())
            .remedy("the file is truncated or damaged: fetch it again");
    }
    for (const ggml_tensor * t = ggml_get_first_tensor(tensors); t;
        t = ggml_get_next_tensor(tensors, const_cast<ggml_tensor *>(t))) {
        if (!ggml_is_empty(t)) continue;
        // llama.cpp's quantizer divides by it.
        throw cannot_read(path, "empty-tensor", "has a tensor without values")
            .expected("dimensions of at least 1")
            .received(std::string(t->name) + " with a dimension of 0")
            .remedy("the file is damaged or badly converted: fetch or convert it again");
    }
    // The end of the last tensor determines how long the file must be.
    const gguf_context * gguf = header.gguf.get();
    size_t needed = gguf_get_data_offset(gguf);
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf); i++) {
        needed = std::max(
            needed, gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, i) + gguf_get_tensor_size(gguf, i));
    }
    std::error_code unknown;
    const uintmax_t size = std::filesystem::file_size(to_path(path), unknown);
    if (!unknown && size < needed && gguf_get_n_tensors(gguf) > 0) {
        throw cannot_read(path, "truncated", "is shorter than its header says")
            .expected(std::to_string(needed) + " bytes")
            .received(std::to_string(size) + " bytes")
            .remedy("fetch it again");
    }
    return header;
}

std::string gguf_string(const gguf_context * gguf, const char * key) {
    const int64_t id = gguf_find_key(gguf, key);
    return id >= 0 && gguf_get_kv_type(gguf, id) == GGUF_TYPE_STRING ? gguf_get_val_str(gguf, id) : "";
}

void write_gguf(const std::string & path, gguf_context * gguf, const std::vector<GgufTensor> & tensors) {
    const GgmlPtr context = tensor_context(tensors.size());
    add_tensors(gguf, context.get(), tensors);
    const std::string temporary = temporary_name(path);
    FILE * file = open_file(temporary, "wb");
    if (!file) throw cannot_write(temporary, path, "cannot create it", errno);
    errno = 0;
    const bool written = gguf_write_to_file_ptr(gguf, file, false) && std::fflush(file) == 0 && !std::ferror(file);
    const int error = errno;
    const bool closed = std::fclose(file) == 0;
    if (!written || !closed) throw cannot_write(temporary, path, "cannot write it", error ? error : EIO);
    move_into_place(temporary, path);
}

std::string temporary_name(const std::string & path) { return path + "." + std::to_string(process_id()) + ".tmp"; }

void move_into_place(const std::string & temporary, const std::string & path) {
    if (const int error = sync_file(temporary)) throw cannot_write(temporary, path, "cannot sync it", error);
    std::error_code error;
    std::filesystem::rename(to_path(temporary), to_path(path), error);
    if (error)
        throw cannot_write(temporary, path, "cannot rename it into place", error.default_error_condition().value());
    sync_folder_of(path);
}

FILE * write_gguf_to_temporary(gguf_context * gguf, const std::vector<GgufTensor> & tensors) {
    const GgmlPtr context = tensor_context(tensors.size());
    add_tensors(gguf, context.get(), tensors);
    errno = 0;
    FILE * file = open_temporary_file();
    if (!file || !gguf_write_to_file_ptr(gguf, file, false) || std::fflush(file) != 0 || std::ferror(file) ||
        std::fseek(file, 0, SEEK_SET) != 0) {
        const int error = errno ? errno : EIO;
        if (file) std::fclose(file);
        throw Error("write-failed", "cannot be written: " + std::generic_category().message(error))
            .subject("a temporary file in " + temporary_folder())
            .expected("room for the adapter, which llama.cpp reads from a file")
            .remedy(suggest_remedy(error, "give that folder more room"));
    }
    return file;
}

}  // namespace cria
