#include <set>

#include "cria/model.h"
#include "llama-model.h"
#include "llama.h"

namespace cria {

namespace {

std::string read_metadata(const llama_model * model, const char * key) {
    char text[512];
    return llama_model_meta_val_str(model, key, text, sizeof text) >= 0 ? std::string(text) : std::string();
}

std::optional<int32_t> to_optional(llama_token token) {
    return token < 0 ? std::nullopt : std::optional<int32_t>(token);
}

}  // namespace

ModelFacts describe_model(const Model & loaded) {
    const llama_model * model = loaded.llama();
    const llama_vocab * vocab = loaded.vocab();
    ModelFacts facts;
    facts.architecture = read_metadata(model, "general.architecture");
    facts.name = read_metadata(model, "general.name");
    // Counts each tensor once: llama.cpp's own count includes a tied embedding twice.
    std::set<std::string> counted;
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        if (counted.insert(name).second) facts.parameter_count += ggml_nelements(tensor);
        facts.weight_types[ggml_type_name(tensor->type)]++;
    }
    facts.vocab_size = llama_vocab_n_tokens(vocab);
    facts.embedding_size = llama_model_n_embd(model);
    facts.layer_count = llama_model_n_layer(model);
    facts.head_count = llama_model_n_head(model);
    facts.kv_head_count = llama_model_n_head_kv(model);
    facts.head_size = int(model->hparams.n_embd_head_k());
    facts.training_context_size = llama_model_n_ctx_train(model);
    facts.bos_token = to_optional(llama_vocab_bos(vocab));
    facts.eos_token = to_optional(llama_vocab_eos(vocab));
    for (int32_t token = 0; token < facts.vocab_size; token++) {
        if (llama_vocab_is_eog(vocab, token)) facts.end_of_generation_tokens.push_back(token);
    }
    facts.adds_bos = llama_vocab_get_add_bos(vocab);
    if (const char * chat = llama_model_chat_template(model, nullptr)) facts.chat_template = chat;
    return facts;
}

}  // namespace cria
