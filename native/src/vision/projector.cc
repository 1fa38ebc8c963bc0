#include "cria/projector.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <algorithm>
#include <cmath>
#include <set>

#include "assertions.h"
#include "cria/error.h"
#include "cria/gguf_file.h"
#include "cria/runtime.h"
#include "llama.h"
#include "system/process.h"
#include "vision/projector_header.h"
#include "vision/vision_library.h"

namespace cria {

namespace {

constexpr const char * kDamaged = "the projector is damaged: fetch or convert it again";

Error refuse(const std::string & path, const std::string & summary) {
    return Error("bad-projector", summary).subject(path);
}

// Turns a picture upright: EXIF's orientation says where the stored picture's first row and column belong.
Picture turn(const Picture & stored, int orientation) {
    const bool on_side = orientation >= 5;
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    Picture shown{on_side ? stored.height : stored.width, on_side ? stored.width : stored.height, {}};
    shown.rgb.resize(stored.rgb.size());
    uint8_t * out = shown.rgb.data();
    for (int y = 0; y < shown.height; y++) {
        for (int x = 0; x < shown.width; x++, out += 3) {
            const int column = on_side ? y : x, row = on_side ? x : y;
            const int64_t from = int64_t(from_bottom ? stored.height - 1 - row : row) * stored.width +
                                 (from_right ? stored.width - 1 - column : column);
            std::copy_n(stored.rgb.data() + 3 * from, 3, out);
        }
    }
    return shown;
}

}  // namespace

Projector::Projector(std::shared_ptr<llama_model> model, const ProjectorOptions & options)
    : options_(options), model_(std::move(model)), library_(&VisionLibrary::load(options.library)) {
    facts_.type = check_projector_header(read_gguf(options.path, false).gguf.get(), options.path);
    const llama_rope_type rope = llama_model_rope_type(model_.get());
    if (needs_mrope(facts_.type) && rope != LLAMA_ROPE_TYPE_MROPE && rope != LLAMA_ROPE_TYPE_IMROPE)
        throw refuse(options.path, "is for models whose positions are of several dimensions (M-RoPE)")
            .expected("a projector for plain positions")
            .received("type \"" + facts_.type + '"')
            .remedy("load the model that it was published with");
    take_log_errors();
    const AssertionGuard guard(options.path);
    const cria_vision_options given{
        options.path.c_str(), model_.get(), options.threads, options.min_tokens, options.max_tokens};
    vision_ = library_->open(&given);
    if (!vision_)
        throw refuse(options.path, "cannot be used with this model")
            .received(take_log_errors())
            .remedy("use the mmproj file that was published with the model");
    cria_vision_info info;
    library_->describe(vision_, &info);
    facts_.vector_size = info.vector_size;
    if (info.is_causal) return;
    library_->close(vision_);
    throw refuse(options.path, "is for models whose image tokens see each other in both directions")
        .expected("a projector for a causal model")
        .received("type \"" + facts_.type + '"')
        .remedy("use another model: such images can neither be shared between prompts nor trained");
}

Projector::~Projector() { close(); }

void Projector::close() {
    refuse_calls();
    jobs_.stop();
    if (vision_) library_->close(vision_);
    vision_ = nullptr;
    model_.reset();
}

std::vector<ImagePiece> Projector::layout(int width, int height) const {
    if (refusing_) throw Error("disposed", "was disposed").subject("projector");
    return find_layout(width, height);
}

std::vector<ImagePiece> Projector::find_layout(int width, int height) const {
    // For longer sides mtmd's products overflow their type.
    constexpr int kLongestSide = 46000;
    const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
    if (width < 1 || height < 1 || width > kLongestSide || height > kLongestSide)
        throw Error("bad-image", "has a size that no projector takes")
            .subject("image")
            .expected("sides of 1 to " + std::to_string(kLongestSide) + " pixels")
            .received(size);
    take_log_errors();
    const AssertionGuard guard(options_.path);
    std::vector<cria_vision_piece> pieces(64);
    for (;;) {
        const int64_t count = library_->layout(vision_, width, height, pieces.data(), int64_t(pieces.size()));
        if (count < 0)
            throw Error("bad-image", "does not fit this projector")
                .subject("image")
                .expected("a size that " + options_.path + " takes")
                .received(size + ": " + take_log_errors());
        const bool has_all = size_t(count) <= pieces.size();
        pieces.resize(size_t(count));
        if (has_all) break;
    }
    std::vector<ImagePiece> layout;
    layout.reserve(pieces.size());
    for (const cria_vision_piece & p : pieces) layout.push_back({p.token, p.vectors, p.columns, p.rows});
    return layout;
}

std::vector<float> Projector::encode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const {
    return encode(decode(file, max_pixels, orientation));
}

std::vector<float> Projector::encode(const Picture & picture) const {
    int64_t count = 0;
    for (const ImagePiece & piece : find_layout(picture.width, picture.height)) count += piece.vectors;
    std::vector<float> vectors(size_t(count) * size_t(facts_.vector_size));
    take_log_errors();
    // Errors in the file appear while the graph is built, on this thread; try_projector has tried the rest.
    const AssertionGuard guard(options_.path);
    const int32_t result = library_->encode(
        vision_, picture.width, picture.height, picture.rgb.data(), vectors.data(), int64_t(vectors.size()));
    if (result < 0) throw Error("encode-failed", "cannot be encoded").subject("image").received(take_log_errors());
    const bool is_finite = std::all_of(vectors.begin(), vectors.end(), [](float x) { return std::isfinite(x); });
    if (!is_finite)
        throw Error("encode-failed", "has vectors that are not finite")
            .subject("image")
            .expected("numbers from " + options_.path)
            .received("NaN or infinity")
            .remedy(kDamaged);
    return vectors;
}

Picture Projector::decode(const std::vector<uint8_t> & file, int64_t max_pixels, int orientation) const {
    take_log_errors();
    const auto fail = [](const std::string & received) {
        return Error("bad-image", "is damaged, or of a kind that is not read")
            .subject("image")
            .expected("a PNG, JPEG, BMP or GIF file")
            .received(received);
    };
    Picture picture;
    int32_t width = 0, height = 0;
    if (library_->picture_size(file.data(), int64_t(file.size()), &width, &height) < 0) throw fail(take_log_errors());
    if (width < 1 || height < 1) throw fail("an empty picture");
    if (int64_t(width) * height > max_pixels)
        throw Error("bad-image", "has too many pixels")
            .subject("image")
            .expected("at most " + std::to_string(max_pixels))
            .received(std::to_string(width) + " x " + std::to_string(height))
            .remedy("scale it down, or raise the limit");
    picture.width = width;
    picture.height = height;
    picture.rgb.resize(size_t(width) * size_t(height) * 3);
    if (library_->decode(file.data(), int64_t(file.size()), picture.rgb.data()) < 0) throw fail(take_log_errors());
    return orientation == 1 ? picture : turn(picture, orientation);
}

namespace {

// Limits this process to half of the machine's memory, so that a damaged file cannot take it from other programs.
// AddressSanitizer maps far more than that. It also need not report the memory that mtmd leaks when opening fails,
// because this process ends.
void prepare_process() {
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#else
    limit_memory_to_half();
#endif
}

// Empty for a size that the projector refuses.
std::vector<ImagePiece> try_layout(const Projector & projector, int width, int height) {
    try {
        return projector.layout(width, height);
    } catch (const Error &) {
        return {};
    }
}

}  // namespace

void try_projector(const std::string & model_path, const ProjectorOptions & options) {
    start_runtime();
    prepare_process();
    llama_model_params params = llama_model_default_params();
    // The model's shapes and vocabulary, without weights.
    params.no_alloc = true;
    params.load_mode = LLAMA_LOAD_MODE_NONE;
    take_log_errors();
    const std::shared_ptr<llama_model> model(
        llama_model_load_from_file(model_path.c_str(), params), [](llama_model * m) { llama_model_free(m); });
    if (!model)
        throw Error("load-failed", "has no vocabulary that llama.cpp can load")
            .subject(model_path)
            .received(take_log_errors());
    const Projector projector(model, options);
    // First a small image, which must be accepted; then each other layout of wide, high and large images, unless it
    // takes longer than a few small ones.
    constexpr int kSizes[][2] = {{64, 64}, {256, 32}, {32, 256}, {640, 480}, {1, 1}, {4096, 4096}, {46000, 16}};
    std::set<std::vector<int32_t>> tried;
    int64_t first = 0;
    for (const auto & [width, height] : kSizes) {
        const std::vector<ImagePiece> layout = try_layout(projector, width, height);
        if (layout.empty() && first > 0) continue;
        std::vector<int32_t> parts;
        int64_t count = 0;
        for (const ImagePiece & piece : layout) {
            parts.insert(parts.end(), {piece.vectors, piece.columns});
            count += piece.vectors;
        }
        constexpr int64_t kMostVectors = 1 << 20;
        if (count > kMostVectors)
            throw refuse(options.path, "cannot encode images")
                .expected("at most " + std::to_string(kMostVectors) + " vectors of an image")
                .received(std::to_string(count))
                .remedy(kDamaged);
        if (first == 0) first = count;
        if (count > 4 * first || int64_t(width) * height > 640 * 480 || !tried.insert(parts).second) continue;
        try {
            projector.encode(Picture{width, height, std::vector<uint8_t>(size_t(width) * size_t(height) * 3, 128)});
        } catch (const Error & error) {
            throw refuse(options.path, "cannot encode images")
                .expected(
                    "vectors of an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels")
                .received(error.what() + (error.received().empty() ? "" : ": " + error.received()))
                .remedy(kDamaged);
        }
    }
}

}  // namespace cria
