// The feed-forward of a layer that is a mixture of experts, and its gradient. A router chooses some experts for each
// token, and weighs what they give. The choice is a constant of the gradient; the weights are not.
#pragma once

#include "architecture.h"
#include "train/compute.h"
#include "train/expert_linear.h"
#include "train/parameters.h"

namespace cria {

// R = T used rows, as in expert_linear.h.
struct ExpertState {
    ExpertChoice choice;  // null without experts
    ggml_tensor * weights;  // [used, T], of what each chosen expert gives
    ggml_tensor *gate, *up, *mid;  // [ff, R]
};

// x [d, T] -> [d, T]; fills `state`.
ggml_tensor * experts_forward(Graph & g, const Architecture & arch, const ExpertParameters & p, ggml_tensor * x,
    bool adapter, ExpertState & state);

// Adds the parameters' gradients; returns that of x from dy [d, T].
ggml_tensor * experts_backward(Graph & g, const Architecture & arch, const ExpertParameters & p,
    const ExpertState & state, ggml_tensor * x, ggml_tensor * dy);

}  // namespace cria
