#include "cria/quantize_file.h"

#include <algorithm>
#include <cctype>

#include "assertions.h"
#include "check_model_header.h"
#include "check_tensors.h"
#include "cria/error.h"
#include "cria/gguf_file.h"
#include "cria/runtime.h"
#include "llama.h"
#include "system/files.h"

namespace cria {

namespace {

struct QuantizeType {
    const char * name;
    llama_ftype type;
};

// The types that need no importance matrix.
constexpr QuantizeType kTypes[] = {
    {"F32", LLAMA_FTYPE_ALL_F32},
    {"F16", LLAMA_FTYPE_MOSTLY_F16},
    {"BF16", LLAMA_FTYPE_MOSTLY_BF16},
    {"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
    {"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K},
    {"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M},
    {"Q5_K_S", LLAMA_FTYPE_MOSTLY_Q5_K_S},
    {"Q5_1", LLAMA_FTYPE_MOSTLY_Q5_1},
    {"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},
    {"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M},
    {"Q4_K_S", LLAMA_FTYPE_MOSTLY_Q4_K_S},
    {"IQ4_NL", LLAMA_FTYPE_MOSTLY_IQ4_NL},
    {"IQ4_XS", LLAMA_FTYPE_MOSTLY_IQ4_XS},
    {"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},
    {"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},
    {"Q3_K_L", LLAMA_FTYPE_MOSTLY_Q3_K_L},
    {"Q3_K_M", LLAMA_FTYPE_MOSTLY_Q3_K_M},
    {"Q3_K_S", LLAMA_FTYPE_MOSTLY_Q3_K_S},
    {"Q2_K", LLAMA_FTYPE_MOSTLY_Q2_K},
};

llama_ftype find_type(const std::string & name) {
    const auto same_letter = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
    for (const auto & [known, type] : kTypes) {
        const std::string text = known;
        if (name.size() == text.size() && std::equal(name.begin(), name.end(), text.begin(), same_letter)) return type;
    }
    std::string all;
    for (const auto & known : list_quantize_types()) all += (all.empty() ? "" : ", ") + known;
    throw Error("bad-option", "is not a type that a model can be quantized to")
        .subject("quantize")
        .expected(all)
        .received('"' + name + '"');
}

}  // namespace

std::vector<std::string> list_quantize_types() {
    std::vector<std::string> names;
    for (const auto & type : kTypes) names.emplace_back(type.name);
    return names;
}

void quantize_file(const QuantizeOptions & options) {
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = find_type(options.type);
    params.nthread = options.threads;
    // An already quantized tensor may still change its type, such as the embedding of a merged model.
    params.allow_requantize = true;
    const GgufHeader header = read_gguf(options.input, false);
    check_model_header(header.gguf.get(), options.input);
    check_tensor_types(header, options.input);
    const std::string temporary = temporary_name(options.output);
    take_log_errors();
    const AssertionGuard guard(options.input);
    if (llama_model_quantize(options.input.c_str(), temporary.c_str(), &params) != 0) {
        const std::string reason = take_log_errors();
        std::error_code ignored;
        std::filesystem::remove(to_path(temporary), ignored);
        throw Error("quantize-failed", "cannot be written as " + options.type)
            .subject(options.output)
            .expected("a model that llama.cpp knows, and a writable folder with room for the file")
            .received(reason)
            .remedy("free some space or choose another path; nothing was changed");
    }
    move_into_place(temporary, options.output);
}

}  // namespace cria
