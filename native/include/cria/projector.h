// A projector (llama.cpp's mmproj): what turns pictures into vectors that stand in a prompt as tokens do. It works
// through libcria-vision.so (native/vision), which is loaded when the first one is opened. Ownership: held by
// shared_ptr; it keeps its model alive. Threads: layout() on any, encode() and decode() on jobs().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cria/job_thread.h"

struct llama_model;
struct cria_vision;

namespace cria {

class VisionLibrary;

// Loads the library into this process, once; gives the release of llama.cpp that it was compiled for.
// Throws Error("vision-mismatch" | "vision-failed").
std::string load_vision_library(const std::string & path);

struct ProjectorOptions {
    std::string library;  // path of libcria-vision.so
    std::string path;
    int threads = 1;
    // Of an image, where the projector takes images of any size; 0: as the file says.
    int min_tokens = 0, max_tokens = 0;
};

struct ProjectorFacts {
    std::string type;  // as llama.cpp names it
    int vector_size = 0;  // floats
};

// A stretch of an image's place in a prompt: a token of the vocabulary, or so many vectors (0: it is a token), with
// their grid where positions are of several dimensions, else 0.
struct ImagePiece {
    int32_t token, vectors, columns, rows;
};

// Pixels, row after row from the top: red, green and blue, a byte each.
struct Picture {
    int width = 0, height = 0;
    std::vector<uint8_t> rgb;
};

class Projector {
   public:
    // Throws Error: those of read_gguf and load_vision_library, bad-projector.
    Projector(std::shared_ptr<llama_model> model, const ProjectorOptions & options);
    ~Projector();
    Projector(const Projector &) = delete;
    Projector & operator=(const Projector &) = delete;

    const ProjectorFacts & facts() const { return facts_; }
    JobThread & jobs() { return jobs_; }

    // How an image of so many pixels stands in a prompt. Throws Error("bad-image" | "bad-projector" | "disposed").
    std::vector<ImagePiece> layout(int width, int height) const;
    // The vectors of a picture, in the order of its layout. Throws Error("bad-image" | "encode-failed").
    std::vector<float> encode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const;
    std::vector<float> encode(const Picture & picture) const;
    // A PNG, JPEG, BMP or GIF (its first picture), over white, turned as `orientation` says: EXIF's, 1 to 8. Throws
    // Error("bad-image").
    Picture decode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const;

    // From now on layout() throws, so that no caller gets what is being freed.
    void refuse_calls() { refusing_ = true; }
    // Drops the jobs that wait and frees the memory. Any thread but the job thread; idempotent.
    void close();

   private:
    std::vector<ImagePiece> find_layout(int width, int height) const;

    const ProjectorOptions options_;
    std::shared_ptr<llama_model> model_;
    const VisionLibrary * library_;  // stays loaded
    cria_vision * vision_ = nullptr;
    ProjectorFacts facts_;
    std::atomic<bool> refusing_{false};
    JobThread jobs_;
};

// Opens a projector over the vocabulary of a model file and uses it as a model would: what ends the process then ends
// it here, in a process that is made for that. Throws what Projector throws.
void try_projector(const std::string & model_path, const ProjectorOptions & options);

}  // namespace cria
