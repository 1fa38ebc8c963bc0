// stb_image for the four supported formats, with a limit on its allocations: otherwise a small file could request
// gigabytes (a PNG's compressed data expand to any size).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "cria_vision.h"
#include "vision_log.h"

namespace {

thread_local size_t largest_allocation = 0;

void * allocate(size_t size) { return size <= largest_allocation ? std::malloc(size) : nullptr; }

void * reallocate(void * old, size_t size) { return size <= largest_allocation ? std::realloc(old, size) : nullptr; }

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MALLOC(size) allocate(size)
#define STBI_REALLOC(old, size) reallocate(old, size)
#define STBI_FREE(memory) std::free(memory)
#include "stb/stb_image.h"

namespace {

constexpr size_t kSmallAllocation = size_t(16) << 20;  // tables, and the padding of very narrow pictures

// Keeps only printable text: stb names an unknown chunk of a PNG by the file's own bytes.
std::string make_printable(std::string text) {
    for (char & c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

int32_t fail(const char * what) {
    const char * reason = stbi_failure_reason();
    log_error(std::string(what) + ": " + (reason ? make_printable(reason) : "unknown"));
    return -1;
}

// A file in memory that detects reads behind its end, where stb reads zeros.
struct Reader {
    const uint8_t * at;
    const uint8_t * end;
    bool is_short = false;

    static int read(void * self, char * out, int size) {
        auto & r = *static_cast<Reader *>(self);
        const ptrdiff_t count = std::min<ptrdiff_t>(size, r.end - r.at);
        if (count == 0) r.is_short = true;
        std::memcpy(out, r.at, size_t(count));
        r.at += count;
        return int(count);
    }
    static void skip(void * self, int size) {
        auto & r = *static_cast<Reader *>(self);
        r.at += std::min<ptrdiff_t>(size, r.end - r.at);
    }
    static int eof(void * self) {
        const auto & r = *static_cast<Reader *>(self);
        return r.at == r.end;
    }
};

// Converts a pixel of `components` (grey, grey and opacity, RGB, or RGB and opacity) to three bytes, over white.
void show_over_white(const uint8_t * pixel, int components, uint8_t * rgb) {
    const bool is_grey = components < 3;
    const int opacity = components % 2 ? 255 : pixel[components - 1];
    for (int c = 0; c < 3; c++) rgb[c] = uint8_t((pixel[is_grey ? 0 : c] * opacity + 255 * (255 - opacity) + 127) / 255);
}

struct FreePixels {
    void operator()(uint8_t * pixels) const { std::free(pixels); }
};

}  // namespace

int32_t cria_picture_size(const uint8_t * file, int64_t length, int32_t * width, int32_t * height) {
    largest_allocation = kSmallAllocation;
    int components = 0;
    if (length > INT32_MAX || !stbi_info_from_memory(file, int(length), width, height, &components))
        return fail("the picture's header cannot be read");
    // For a BMP that is stored from the top row down.
    if (*height < 0 && *height > INT32_MIN) *height = -*height;
    return 0;
}

int32_t cria_picture_decode(const uint8_t * file, int64_t length, uint8_t * rgb) {
    int32_t width = 0, height = 0;
    if (cria_picture_size(file, length, &width, &height) < 0) return -1;
    const size_t size = size_t(width) * size_t(height) * 3;
    // 16-bit RGBA and its conversion need the most of the four formats; compressed parts are gathered in up to twice
    // their size.
    largest_allocation = std::max(6 * size, 2 * size_t(length)) + kSmallAllocation;
    const stbi_io_callbacks callbacks{Reader::read, Reader::skip, Reader::eof};
    Reader reader{file, file + length};
    int components = 0, decoded_width = 0, decoded_height = 0;
    const std::unique_ptr<uint8_t, FreePixels> decoded(
        stbi_load_from_callbacks(&callbacks, &reader, &decoded_width, &decoded_height, &components, 0));
    if (!decoded) return fail("the picture cannot be decoded");
    const char * const problem = reader.is_short ? "the file ends within the picture"
                                 : decoded_width != width || decoded_height != height
                                     ? "the picture has another size than its header says"
                                     : nullptr;
    if (problem) {
        log_error(problem);
        return -1;
    }
    for (size_t i = 0; i < size / 3; i++) show_over_white(decoded.get() + i * size_t(components), components, rgb + 3 * i);
    return 0;
}
