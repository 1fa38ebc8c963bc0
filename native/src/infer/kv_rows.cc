#include "infer/kv_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ggml-backend.h"
#include "llama-kv-cache.h"
#include "llama-model.h"
#include "llama.h"

namespace cria {

KvRows::KvRows(llama_context * context) {
    const auto * cache = dynamic_cast<const llama_kv_cache *>(llama_get_memory(context));
    const auto & hparams = llama_get_model(context)->hparams;
    if (!cache || hparams.n_swa > 0) return;
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> views(
        ggml_init({2 * hparams.n_layer() * ggml_tensor_overhead(), nullptr, true}), ggml_free);
    const llama_kv_cache::slot_info first_stream{0, 0, {0}, {{0}}};
    for (uint32_t layer = 0; layer < hparams.n_layer(); layer++) {
        const ggml_tensor * k = cache->get_k(views.get(), int32_t(layer), 1, first_stream);
        const ggml_tensor * v = cache->get_v(views.get(), int32_t(layer), 1, first_stream);
        if (!ggml_backend_buffer_is_host(k->view_src->buffer) || !ggml_backend_buffer_is_host(v->view_src->buffer)) {
            tensors_.clear();
            return;
        }
        tensors_.push_back({k->view_src, false});
        tensors_.push_back({v->view_src, v->nb[1] > v->nb[2]});
    }
}

template <typename Act>
void KvRows::for_each_piece(int a, int b, size_t count, const Act & act) const {
    for (const auto & [data, transposed] : tensors_) {
        const auto stream = [t = data](int i) { return static_cast<char *>(t->data) + size_t(i) * t->nb[2]; };
        if (!transposed) {
            act(stream(a), stream(b), count * data->nb[1]);
            continue;
        }
        const size_t step = size_t(data->ne[1]) * data->nb[0];
        for (size_t row = 0; row < size_t(data->ne[0]); row++)
            act(stream(a) + row * step, stream(b) + row * step, count * data->nb[0]);
    }
}

void KvRows::copy(int from, int to, size_t count) const {
    for_each_piece(from, to, count, [](const char * in, char * out, size_t bytes) { std::memcpy(out, in, bytes); });
}

void KvRows::swap(int a, int b, size_t count) const {
    for_each_piece(a, b, count, [](char * x, char * y, size_t bytes) { std::swap_ranges(x, x + bytes, y); });
}

}  // namespace cria
