// A projector (llama.cpp's mmproj) turns pictures into vectors, which stand in a prompt as tokens do. It works through
// libcria-vision.so (native/vision), which is loaded when the first projector is opened. Ownership: held by shared_ptr;
// it keeps its model alive. Threads: layout() on any, encode() and decode() on jobs().
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

// Loads the library into this process, once; returns the release of llama.cpp that it was compiled for.
// Throws Error("vision-mismatch" | "vision-failed").
std::string load_vision_library(const std::string & path);

struct ProjectorOptions {
    std::string library;  // path of libcria-vision.so
    std::string path;
    int threads = 1;
    // Limits for one image, for projectors that take images of any size; 0: the file's limits.
    int min_tokens = 0, max_tokens = 0;
};

struct ProjectorFacts {
    std::string type;  // as llama.cpp names it
    int vector_size = 0;  // floats
};

// A part of an image's layout in a prompt: one token of the vocabulary (`vectors` is 0), or `vectors` vectors.
// `columns` and `rows` give the vectors' grid for models with multi-dimensional positions, else 0.
struct ImagePiece {
    int32_t token, vectors, columns, rows;
};

// Pixels in rows from the top: red, green and blue, one byte each.
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

    // The layout in a prompt of an image with this many pixels. Throws Error("bad-image" | "bad-projector" |
    // "disposed").
    std::vector<ImagePiece> layout(int width, int height) const;
    // The vectors of a picture, in the order of its layout. Throws Error("bad-image" | "encode-failed").
    std::vector<float> encode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const;
    std::vector<float> encode(const Picture & picture) const;
    // Decodes a PNG, JPEG, BMP or GIF (its first picture), puts it over white and turns it by EXIF's `orientation`, 1
    // to 8. Throws Error("bad-image").
    Picture decode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const;

    // From now on layout() throws, so that no caller gets a part that is being freed.
    void refuse_calls() { refusing_ = true; }
    // Drops waiting jobs and frees the memory. Any thread but the job thread; idempotent.
    void close();

   private:
    std::vector<ImagePiece> find_layout(int width, int height) const;

    const ProjectorOptions options_;
    std::shared_ptr<llama_model> model_;
    const VisionLibrary * library_;  // never unloaded
    cria_vision * vision_ = nullptr;
    ProjectorFacts facts_;
    std::atomic<bool> refusing_{false};
    JobThread jobs_;
};

// Opens a projector with a model file's vocabulary and uses it as a model would. A bad file may end the process, so
// this runs in a child process. Throws the errors of Projector.
void try_projector(const std::string & model_path, const ProjectorOptions & options);

}  // namespace cria
