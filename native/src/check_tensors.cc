#include "check_tensors.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <map>
#include <string_view>

#include "assertions.h"
#include "cria/error.h"
#include "cria/runtime.h"
#include "ggml-cpu.h"
#include "llama-arch.h"
#include "system/shared_library.h"

namespace cria {

namespace {

using TraitsOf = const ggml_type_traits_cpu * (*)(ggml_type);

// ggml's CPU operations are in a library that ggml chose itself.
TraitsOf find_cpu_traits() {
    const std::string path = path_of_library(find_cpu_function("ggml_backend_set_n_threads"));
    std::string ignored;
    void * library = path.empty() ? nullptr : load_library(path, ignored);
    return library ? reinterpret_cast<TraitsOf>(find_function(library, "ggml_get_type_traits_cpu")) : nullptr;
}

// Whether ggml multiplies rows of this type: by a dot product with floats converted to the type that it wants.
bool can_multiply(ggml_type type) {
    static const TraitsOf traits_of = find_cpu_traits();
    if (!traits_of) return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || ggml_is_quantized(type);
    const ggml_type_traits_cpu * traits = traits_of(type);
    if (!traits->vec_dot) return false;
    const ggml_type other = traits->vec_dot_type;
    return other == GGML_TYPE_F32 || traits_of(other)->from_float;
}

// Whether rows of this type can be converted to floats.
bool can_look_up(ggml_type type) { return type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float; }

// "blk.12.ffn_up.3" -> "blk.0.ffn_up.0"
std::string without_numbers(const std::string & name) {
    std::string text;
    for (size_t begin = 0; begin <= name.size();) {
        const size_t end = std::min(name.find('.', begin), name.size());
        const std::string part = name.substr(begin, end - begin);
        const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                    [](unsigned char c) { return std::isdigit(c) != 0; });
        text += (begin > 0 ? "." : "") + (is_number ? "0" : part);
        begin = end + 1;
    }
    return text;
}

// llama.cpp's operation on each tensor that it knows, by the tensor's name without suffix.
std::map<std::string, ggml_op> list_operations() {
    std::map<std::string, ggml_op> operations;
    const AssertionGuard guard("tensors");
    for (int i = 0; i <= int(LLM_TENSOR_DFLASH_SELECTOR_HIDDEN); i++) {
        const auto tensor = llm_tensor(i);
        try {
            const std::string name = LLM_TN_IMPL(LLM_ARCH_LLAMA, tensor, nullptr, 0, 0).str();
            operations[without_numbers(name)] = llm_tensor_info_for(tensor).op;
        } catch (const std::exception &) {
            continue;  // a number that names no tensor
        }
    }
    // Rows of expert numbers.
    operations["blk.0.ffn_gate_tid2eid"] = GGML_OP_NONE;
    return operations;
}

// GGML_OP_NONE where llama.cpp has no such tensor, or does not use it.
ggml_op find_operation(const std::string & tensor) {
    static const std::map<std::string, ggml_op> operations = list_operations();
    const std::string name = without_numbers(tensor);
    const auto whole = operations.find(name);
    if (whole != operations.end()) return whole->second;
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return GGML_OP_NONE;
    if (name.compare(dot, std::string::npos, ".bias") == 0) return GGML_OP_ADD;
    const auto stem = operations.find(name.substr(0, dot));
    return stem == operations.end() ? GGML_OP_NONE : stem->second;
}

class TypeChecker {
   public:
    TypeChecker(const GgufHeader & header, const std::string & path) : header_(header), path_(path) {}

    void check(const ggml_tensor * tensor) const {
        const std::string name = tensor->name;
        const ggml_type type = tensor->type;
        if (ggml_n_dims(tensor) <= 1)
            return require(type == GGML_TYPE_F32, tensor, "F32, as every tensor of one dimension");
        switch (find_operation(name)) {
            case GGML_OP_NONE:
                return;
            case GGML_OP_MUL_MAT:
            case GGML_OP_MUL_MAT_ID:
                return require(
                    can_multiply(type), tensor, "a type of floats or quantized values that can be multiplied");
            case GGML_OP_GET_ROWS: {
                const bool is_output = name == "token_embd.weight" && !find("output.weight");
                return require(can_look_up(type) && (!is_output || can_multiply(type)), tensor,
                    "a type of floats or quantized values whose rows can be read");
            }
            case GGML_OP_IM2COL:
                return require(type == GGML_TYPE_F16, tensor, "F16, as every convolution of this kind");
            default:
                return require(type == GGML_TYPE_F32, tensor, "F32, as every tensor that is added or scales");
        }
    }

   private:
    const ggml_tensor * find(const char * name) const { return ggml_get_tensor(header_.tensors.get(), name); }

    void require(bool fits, const ggml_tensor * tensor, const char * expected) const {
        if (fits) return;
        throw Error("bad-model", "has a tensor of a type that llama.cpp cannot compute with")
            .subject(path_)
            .expected(std::string(tensor->name) + " of " + expected)
            .received(ggml_type_name(tensor->type))
            .remedy("convert the model again, with norms, biases and other vectors as F32");
    }

    const GgufHeader & header_;
    const std::string & path_;
};

}  // namespace

void check_tensor_types(const GgufHeader & header, const std::string & path) {
    const TypeChecker checker(header, path);
    for (const ggml_tensor * t = ggml_get_first_tensor(header.tensors.get()); t;
        t = ggml_get_next_tensor(header.tensors.get(), const_cast<ggml_tensor *>(t)))
        checker.check(t);
}

}  // namespace cria
