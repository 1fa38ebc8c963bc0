// Decodes each named file as libcria-vision.so does; scripts/nightly/image-mutants.mjs compiles it with sanitizers.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cria_vision.h"
#include "vision_log.h"

void log_error(const std::string &) {}

int main(int count, char ** paths) {
    int decoded = 0;
    for (int i = 1; i < count; i++) {
        std::ifstream in(paths[i], std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
        // Exactly as many bytes as the file has, so that a read behind them is detected.
        const std::vector<uint8_t> file(bytes.begin(), bytes.end());
        int32_t width = 0, height = 0;
        if (cria_picture_size(file.data(), int64_t(file.size()), &width, &height) < 0) continue;
        if (width < 1 || height < 1 || int64_t(width) * height > (1 << 20)) continue;
        std::vector<uint8_t> rgb(size_t(width) * size_t(height) * 3);
        if (cria_picture_decode(file.data(), int64_t(file.size()), rgb.data()) == 0) decoded++;
    }
    std::printf("%d of %d decoded, no error found\n", decoded, count - 1);
}
