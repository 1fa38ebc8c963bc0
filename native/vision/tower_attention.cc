#include "tower_attention.h"

#include <cstring>
#include <stdexcept>

namespace {

cria_attend attend_now = nullptr;

// Index of a node's last parameter: custom operations use the first six.
constexpr size_t kScaleAt = GGML_MAX_OP_PARAMS / sizeof(int32_t) - 1;

bool has_vectors(const ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float) && t->nb[1] % sizeof(float) == 0 &&
           t->nb[2] % sizeof(float) == 0 && t->nb[3] % sizeof(float) == 0;
}

cria_tower_vectors describe(const ggml_tensor * t, int64_t sample) {
    return {reinterpret_cast<const float *>(static_cast<const char *>(t->data) + size_t(sample) * t->nb[3]), t->ne[2],
        t->ne[1], int64_t(t->nb[2] / sizeof(float)), int64_t(t->nb[1] / sizeof(float))};
}

void run(ggml_tensor * out, int thread, int threads, void * attend) {
    const ggml_tensor *q = out->src[0], *mask = out->src[3];
    cria_tower_attention a{};
    a.head_size = q->ne[0];
    std::memcpy(&a.scale, &out->op_params[kScaleAt], sizeof(float));
    a.windows = mask ? static_cast<const int32_t *>(mask->data) : nullptr;
    for (int64_t sample = 0; sample < q->ne[3]; sample++) {
        a.q = describe(q, sample);
        a.k = describe(out->src[1], sample);
        a.v = describe(out->src[2], sample);
        a.out = static_cast<float *>(out->data) + sample * q->ne[2] * out->ne[0];
        reinterpret_cast<cria_attend>(attend)(&a, thread, threads);
    }
}

}  // namespace

void set_tower_attention(cria_attend attend) { attend_now = attend; }

ggml_tensor * attend_by_blocks(ggml_context * context, ggml_tensor * q, ggml_tensor * k, ggml_tensor * v,
    ggml_tensor * mask, float scale, ggml_tensor * sinks) {
    const bool has_windows = mask && mask->type == GGML_TYPE_I32;
    const bool takes_mask = !mask || (has_windows && mask->ne[0] == 2 && mask->ne[1] == q->ne[2] && q->ne[3] == 1);
    const bool takes_shapes = k->ne[0] == q->ne[0] && v->ne[0] == q->ne[0] && v->ne[1] == k->ne[1] &&
                              q->ne[1] % k->ne[1] == 0 && v->ne[2] == k->ne[2] && k->ne[3] == q->ne[3] &&
                              v->ne[3] == q->ne[3];
    if (attend_now && !sinks && takes_mask && takes_shapes && has_vectors(q) && has_vectors(k) && has_vectors(v)) {
        ggml_tensor * sources[] = {q, k, v, mask};
        ggml_tensor * out = ggml_custom_4d(context, GGML_TYPE_F32, q->ne[0] * q->ne[1], q->ne[2] * q->ne[3], 1, 1,
            sources, mask ? 4 : 3, run, GGML_N_TASKS_MAX, reinterpret_cast<void *>(attend_now));
        std::memcpy(&out->op_params[kScaleAt], &scale, sizeof(float));
        return out;
    }
    if (has_windows) throw std::runtime_error("the tower's windows of attention cannot be used");
    return nullptr;
}
