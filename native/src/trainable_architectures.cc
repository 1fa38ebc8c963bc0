#include "trainable_architectures.h"

namespace cria {

const std::vector<TrainableArchitecture> & trainable_architectures() {
    static const std::vector<TrainableArchitecture> list = {
        {"llama", nullptr},
        {"qwen2", nullptr},
        {"qwen3", nullptr},
        {"qwen2vl", nullptr},
        {"qwen3vl", nullptr},
    };
    return list;
}

}  // namespace cria
