#include "vision/projector_header.h"

#include <set>

#include "cria/error.h"
#include "cria/gguf_file.h"

namespace cria {

namespace {

struct Range {
    const char * key;
    uint32_t low, high;
};

// Wide enough for every projector that llama.cpp knows. A square image of the largest size takes 400 MB as floats.
constexpr Range kRanges[] = {
    {"clip.vision.image_size", 1, 6144},
    {"clip.vision.patch_size", 1, 1024},
    {"clip.vision.embedding_length", 1, 65536},
    {"clip.vision.feed_forward_length", 0, 1u << 20},
    {"clip.vision.block_count", 0, 512},
    {"clip.vision.attention.head_count", 1, 4096},
    {"clip.vision.projection_dim", 0, 1u << 20},
};

bool read_flag(const gguf_context * gguf, const char * key) {
    const int64_t id = gguf_find_key(gguf, key);
    return id >= 0 && gguf_get_kv_type(gguf, id) == GGUF_TYPE_BOOL && gguf_get_val_bool(gguf, id);
}

void check_range(const gguf_context * gguf, const std::string & path, const Range & range) {
    const int64_t id = gguf_find_key(gguf, range.key);
    const bool is_number = id >= 0 && gguf_get_kv_type(gguf, id) == GGUF_TYPE_UINT32;
    const uint32_t value = is_number ? gguf_get_val_u32(gguf, id) : 0;
    if (is_number && value >= range.low && value <= range.high) return;
    throw Error("bad-projector", "has a number in its header that no projector has")
        .subject(path)
        .expected(std::string(range.key) + " from " + std::to_string(range.low) + " to " + std::to_string(range.high))
        .received(is_number ? std::to_string(value) : "none of type uint32");
}

}  // namespace

std::string check_projector_header(const gguf_context * gguf, const std::string & path) {
    if (!read_flag(gguf, "clip.has_vision_encoder")) {
        const bool hears = read_flag(gguf, "clip.has_audio_encoder");
        throw Error("bad-projector", hears ? "is a projector for sound" : "is not a projector")
            .subject(path)
            .expected("a projector for images (llama.cpp's mmproj)")
            .received(hears ? "only clip.has_audio_encoder"
                            : "a GGUF of architecture \"" + gguf_string(gguf, "general.architecture") + "\"")
            .remedy("use the mmproj file that was published with the model");
    }
    for (const Range & range : kRanges) check_range(gguf, path, range);
    const std::string type = gguf_string(gguf, "clip.projector_type");
    return type.empty() ? gguf_string(gguf, "clip.vision.projector_type") : type;
}

bool needs_mrope(const std::string & type) {
    static const std::set<std::string> types = {
        "qwen2vl_merger", "qwen2.5vl_merger", "qwen2.5o", "qwen3vl_merger", "glm4v", "paddleocr", "hunyuanvl"};
    return types.count(type) > 0;
}

}  // namespace cria
