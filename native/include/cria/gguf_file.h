// Reads and writes GGUF files safely: headers are checked before llama.cpp sees a file, and a file is written to a
// temporary name, synced, then renamed, so that a reader never sees a partial file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ggml.h"
#include "gguf.h"

namespace cria {

struct GgufDeleter {
    void operator()(gguf_context * context) const { gguf_free(context); }
};
struct GgmlDeleter {
    void operator()(ggml_context * context) const { ggml_free(context); }
};
using GgufPtr = std::unique_ptr<gguf_context, GgufDeleter>;
using GgmlPtr = std::unique_ptr<ggml_context, GgmlDeleter>;

struct GgufHeader {
    GgufPtr gguf;
    GgmlPtr tensors;  // without data unless `with_data` was set
};

// Reads the header (and, if asked, the tensors). Throws Error: file-not-found, not-gguf, gguf-version, truncated.
GgufHeader read_gguf(const std::string & path, bool with_data);

// "" when the key is absent or not a string.
std::string gguf_string(const gguf_context * gguf, const char * key);

// One tensor to write. Its data must stay valid until the call returns.
struct GgufTensor {
    std::string name;
    ggml_type type;
    std::vector<int64_t> shape;  // ne order, fastest axis first
    const void * data;
};

// Writes atomically. Adds the tensors to `gguf`. Throws Error("write-failed") with the reason; no partial file stays.
void write_gguf(const std::string & path, gguf_context * gguf, const std::vector<GgufTensor> & tensors);

// The temporary name of a file that is being written. It is in the same folder, so that the rename is one step.
std::string temporary_name(const std::string & path);

// Syncs a finished file and renames it. Throws Error("write-failed"); the temporary file is removed then.
void move_into_place(const std::string & temporary, const std::string & path);

// Writes the same bytes into an unnamed temporary file and rewinds it. The caller closes it.
FILE * write_gguf_to_temporary(gguf_context * gguf, const std::vector<GgufTensor> & tensors);

}  // namespace cria
