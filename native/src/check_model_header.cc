#include "check_model_header.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "cria/error.h"
#include "cria/gguf_file.h"
#include "llama-hparams.h"

namespace cria {

namespace {

class HeaderChecker {
   public:
    HeaderChecker(const gguf_context * gguf, const std::string & path)
        : gguf_(gguf), path_(path), arch_(gguf_string(gguf, "general.architecture")) {}

    void check_layers() const {
        const auto layers = find_count("block_count");
        if (!layers) return;
        if (*layers < 1 || *layers > LLAMA_MAX_LAYERS)
            refuse("block_count", "1 to " + std::to_string(LLAMA_MAX_LAYERS) + " layers", std::to_string(*layers));
        for (const char * name : {"nextn_predict_layers", "n_deepstack_layers"}) {
            const auto some = find_count(name);
            if (some && *some > *layers)
                refuse(name, "at most block_count, " + std::to_string(*layers), std::to_string(*some));
        }
        // llama.cpp divides by it.
        if (find_count("full_attention_interval") == 0) refuse("full_attention_interval", "at least 1", "0");
    }

    void check_experts() const {
        const uint64_t experts = find_count("expert_count").value_or(0),
                       used = find_count("expert_used_count").value_or(0);
        if (experts > LLAMA_MAX_EXPERTS)
            refuse("expert_count", "at most " + std::to_string(LLAMA_MAX_EXPERTS), std::to_string(experts));
        if (used > experts)
            refuse("expert_used_count", "at most expert_count, " + std::to_string(experts), std::to_string(used));
        // For an array of counts, one per layer, llama.cpp checks itself.
        const bool is_missing = gguf_find_key(gguf_, key("expert_used_count").c_str()) < 0;
        if (experts > 0 && used == 0 && (is_missing || find_count("expert_used_count"))) {
            refuse("expert_used_count", "1 to expert_count, " + std::to_string(experts), is_missing ? "nothing" : "0");
        }
    }

    void check_epsilons() const {
        for (const char * name :
            {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "attention.group_norm_epsilon"}) {
            const int64_t id = gguf_find_key(gguf_, key(name).c_str());
            if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_FLOAT32) continue;
            const float epsilon = gguf_get_val_f32(gguf_, id);
            if (!std::isfinite(epsilon) || epsilon < 0)
                refuse(name, "a finite number of at least 0", std::to_string(epsilon));
        }
    }

    // M-RoPE's sections: RoPE divides by their sum, on ggml's threads.
    void check_rope_sections() const {
        const int64_t id = gguf_find_key(gguf_, key("rope.dimension_sections").c_str());
        if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY) return;
        const gguf_type type = gguf_get_arr_type(gguf_, id);
        if (type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32) return;
        const auto * sections = static_cast<const int32_t *>(gguf_get_arr_data(gguf_, id));
        const size_t count = gguf_get_arr_n(gguf_, id);
        int64_t sum = 0;
        bool is_wrong = false;
        std::string received;
        for (size_t i = 0; i < std::min<size_t>(count, 4); i++) {
            is_wrong |= sections[i] < 0;
            sum += sections[i];
            received += (i > 0 ? ", " : "") + std::to_string(sections[i]);
        }
        const uint64_t heads = std::max<uint64_t>(1, find_count("attention.head_count").value_or(1));
        const uint64_t head_size =
            find_count("attention.key_length").value_or(find_count("embedding_length").value_or(0) / heads);
        // The fourth section belongs to no position that a token has.
        const bool has_any =
            std::any_of(sections, sections + std::min<size_t>(count, 3), [](int32_t n) { return n > 0; });
        if (is_wrong || !has_any || sum > int64_t(head_size))
            refuse("rope.dimension_sections",
                "pairs of dimensions for each position, in all at most " + std::to_string(head_size), received);
    }

    // Refuses two tokens with the same text: the vocabulary would have more ids than texts.
    void check_tokens() const {
        const int64_t id = gguf_find_key(gguf_, "tokenizer.ggml.tokens");
        if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY ||
            gguf_get_arr_type(gguf_, id) != GGUF_TYPE_STRING)
            return;
        std::unordered_map<std::string_view, size_t> seen;
        const size_t count = gguf_get_arr_n(gguf_, id);
        seen.reserve(count);
        for (size_t i = 0; i < count; i++) {
            const std::string_view text = gguf_get_arr_str(gguf_, id, i);
            if (text.empty()) continue;
            const auto [first, is_new] = seen.emplace(text, i);
            if (is_new) continue;
            throw Error("bad-model", "has two tokens with the same text")
                .subject(path_)
                .expected("tokenizer.ggml.tokens without duplicates")
                .received("\"" + std::string(text) + "\" as token " + std::to_string(first->second) + " and as token " +
                          std::to_string(i))
                .remedy("convert the model again, with another text for one of them");
        }
    }

   private:
    std::string key(const char * name) const { return arch_ + "." + name; }

    // Nothing when the key is absent, or of another type, which llama.cpp refuses itself.
    std::optional<uint64_t> find_count(const char * name) const {
        const int64_t id = gguf_find_key(gguf_, key(name).c_str());
        if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_UINT32) return std::nullopt;
        return gguf_get_val_u32(gguf_, id);
    }

    [[noreturn]] void refuse(const char * name, const std::string & expected, const std::string & received) const {
        throw Error("bad-model", "has a wrong " + key(name))
            .subject(path_)
            .expected(expected)
            .received(received)
            .remedy("the file is damaged or badly converted: fetch or convert it again");
    }

    const gguf_context * gguf_;
    const std::string & path_;
    const std::string arch_;
};

}  // namespace

void check_model_header(const gguf_context * gguf, const std::string & path) {
    const HeaderChecker checker(gguf, path);
    checker.check_layers();
    checker.check_experts();
    checker.check_epsilons();
    checker.check_rope_sections();
    checker.check_tokens();
}

}  // namespace cria
