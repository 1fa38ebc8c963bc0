#include "train/swiglu.h"

#include "cpu/shared_range.h"
#include "math/row_kernel.h"

namespace cria {

SwigluGradient swiglu_backward(Graph & g, ggml_tensor * gate, ggml_tensor * up, ggml_tensor * dy) {
    ggml_context * c = g.ctx();
    if (!g.on_cpu()) return {ggml_silu_back(c, ggml_mul(c, dy, up), gate), ggml_mul(c, dy, ggml_silu(c, gate))};
    // One pass over memory instead of four; both gradients in one tensor, one behind the other.
    const int64_t ff = gate->ne[0], T = gate->ne[1];
    ggml_tensor * both =
        g.custom({ff, 2 * T}, {gate, up, dy}, [](ggml_tensor * node, int thread, int threads, Compute &) {
        const auto floats = [](const ggml_tensor * t) { return static_cast<float *>(t->data); };
        // In whole blocks: the compiler's code for elements that do not fill a register must not depend on where a
        // thread begins.
        const int64_t n = ggml_nelements(node) / 2, begin = part_begin(n, 64, thread, threads),
                      end = part_begin(n, 64, thread + 1, threads);
        row_kernel().swiglu_gradient(floats(node->src[0]) + begin, floats(node->src[1]) + begin,
            floats(node->src[2]) + begin, floats(node) + begin, floats(node) + n + begin, end - begin);
    });
    return {ggml_view_2d(c, both, ff, T, both->nb[1], 0),
        ggml_view_2d(c, both, ff, T, both->nb[1], size_t(T) * both->nb[1])};
}

}  // namespace cria
