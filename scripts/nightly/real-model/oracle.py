"""What a GGUF computes, by code of others: transformers' LlamaForCausalLM over the weights that transformers itself dequantizes,
in float64 from end to end, and PyTorch's autograd. One JSON request on standard input, one JSON answer on standard output.

  {"command": "scores", "model": FILE, "sequences": [[ID, ...], ...], "adapter": FOLDER or null, "scale": alpha / rank}
      -> {"logprobs": [[...], ...], "channels": {...}}; the adapter is merged into the weights
  {"command": "gradients", "model": FILE, "sequences": [[ID, ...]], "weights": [[W, ...]], "ours": FOLDER, "lora": true or false}
      -> {"loss": ..., "tensors": [{"name", "first": 64 values, "cosine", "error", "norm"}]}
      Loss: the sum of W times the logprob, negated. FOLDER holds ours as files NAME.gradient (and NAME.value for LoRA), float32,
      and index.json: [{"name", "shape"}], the fastest axis first.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from gguf import GGUFReader, dequantize
from transformers import AutoModelForCausalLM
from transformers.models.llama import modeling_llama as llama

transformers.logging.set_verbosity_error()


def in_float64():
    """transformers computes norms and angles in float32 whatever the weights are: here they are computed in float64."""

    def norm(self, states):
        variance = states.pow(2).mean(-1, keepdim=True)
        return self.weight * (states * torch.rsqrt(variance + self.variance_epsilon))

    def angles(self, x, position_ids):
        size = self.config.head_dim if getattr(self.config, "head_dim", None) else self.config.hidden_size // self.config.num_attention_heads
        theta = self.config.rope_parameters["rope_theta"]
        frequencies = theta ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
        turned = position_ids[:, :, None].double() * frequencies
        both = torch.cat((turned, turned), dim=-1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)

    llama.LlamaRMSNorm.forward = norm
    llama.LlamaRotaryEmbedding.forward = angles


def load(file):
    path = Path(file)
    in_float64()
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float64, attn_implementation="sdpa"
    )
    # PyTorch gives the embedding of the padding token no gradient, and here that token ends each turn.
    model.model.embed_tokens.padding_idx = None
    check_weights(model, path)
    return model.eval()


NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def find_module(model, name):
    """The module of a GGUF's tensor: blk.3.attn_q or token_embd."""
    parts = name.split(".")
    path = f"model.layers.{parts[1]}.{NAMES[parts[2]]}" if parts[0] == "blk" else WHOLE[parts[0]]
    return model.get_submodule(path)


def order_rows(model, name):
    """Of each row of the module's weight, its row in the GGUF, which pairs the axes that RoPE turns."""
    config = model.config
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(name.split(".")[-1])
    rows = find_module(model, name).weight.shape[0]
    if heads is None:
        return np.arange(rows)
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def check_weights(model, path):
    """Two readers agree: transformers' weights are those that gguf-py dequantizes."""
    for tensor in GGUFReader(path).tensors:
        name = tensor.name.removesuffix(".weight")
        ours = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        theirs = find_module(model, name).weight.detach().numpy()
        if ours.ndim == 2:
            ours = ours[order_rows(model, name)]
        worst = np.abs(ours - theirs).max()
        if worst > 1e-7 * np.abs(ours).max():
            raise SystemExit(f"{tensor.name}: transformers' weights are {worst} away from gguf-py's")


def logprobs_of(model, ids):
    states = model.model(torch.tensor([ids])).last_hidden_state[0]
    parts = []
    # The vocabulary is large: 256 rows of logits at a time.
    for begin in range(0, len(ids) - 1, 256):
        end = min(begin + 256, len(ids) - 1)
        logits = model.lm_head(states[begin:end])
        parts.append(torch.log_softmax(logits, -1)[torch.arange(end - begin), torch.tensor(ids[begin + 1 : end + 1])])
    return torch.cat(parts)


def describe_channels(model, ids):
    """How far the largest channel of the residual stream, and of what products take, stands above the median one."""
    ratios = {"residual": [], "products": []}
    handles = []

    def look(kind, states):
        states = states.reshape(-1, states.shape[-1])[1:].abs()
        ratios[kind].append(float(states.max() / states.median()))

    for layer in model.model.layers:
        handles.append(layer.register_forward_hook(lambda _, __, out: look("residual", out[0] if isinstance(out, tuple) else out)))
        for name in ("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"):
            handles.append(layer.get_submodule(name).register_forward_pre_hook(lambda _, args: look("products", args[0])))
    with torch.no_grad():
        model.model(torch.tensor([ids]))
    for handle in handles:
        handle.remove()
    return {kind: max(found) for kind, found in ratios.items()}


class Adapted(torch.nn.Module):
    """A linear layer with W + scale B A, A [rank, inputs], B [outputs, rank] with rows as in the module's weight."""

    def __init__(self, base, a, b, scale):
        super().__init__()
        self.weight = base.weight
        self.a = torch.nn.Parameter(torch.from_numpy(a.astype(np.float64)))
        self.b = torch.nn.Parameter(torch.from_numpy(b.astype(np.float64)))
        self.scale = scale

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight) + self.scale * ((x @ self.a.T) @ self.b.T)


def read_ours(folder, name, shape, what):
    return np.fromfile(Path(folder) / f"{name}.{what}", dtype=np.float32).reshape(shape[::-1])


def read_shapes(folder):
    return {entry["name"]: entry["shape"] for entry in json.loads((Path(folder) / "index.json").read_text())}


def replace_module(model, name, module):
    parent, _, last = f"model.layers.{name.split('.')[1]}.{NAMES[name.split('.')[2]]}".rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def adapt(model, folder, scale):
    """Puts the adapter of a folder into the model. Returns the modules by the GGUF's names."""
    shapes = read_shapes(folder)
    modules = {}
    for name in sorted(key.removesuffix(".weight.lora_a") for key in shapes if key.endswith(".lora_a")):
        a = read_ours(folder, f"{name}.weight.lora_a", shapes[f"{name}.weight.lora_a"], "value")
        b = read_ours(folder, f"{name}.weight.lora_b", shapes[f"{name}.weight.lora_b"], "value")
        modules[name] = Adapted(find_module(model, name), a, b[order_rows(model, name)], scale)
        replace_module(model, name, modules[name])
    return modules


def scores(request):
    model = load(request["model"])
    channels = describe_channels(model, request["sequences"][0])
    if request.get("adapter"):
        for name, adapted in adapt(model, request["adapter"], request["scale"]).items():
            adapted.weight.data += request["scale"] * (adapted.b.data @ adapted.a.data)
            linear = torch.nn.Linear(adapted.a.shape[1], adapted.b.shape[0], bias=False, dtype=torch.float64)
            linear.weight = adapted.weight
            replace_module(model, name, linear)
    with torch.no_grad():
        found = [[0.0, *logprobs_of(model, ids).tolist()] for ids in request["sequences"]]
    return {"logprobs": found, "channels": channels}


def compare(name, ours, theirs):
    ours, theirs = ours.astype(np.float64).ravel(), theirs.ravel()
    norm = np.linalg.norm(theirs)
    return {
        "name": name,
        "first": theirs[:64].tolist(),
        "cosine": float(ours @ theirs / (np.linalg.norm(ours) * norm)),
        "error": float(np.linalg.norm(ours - theirs) / norm),
        "norm": float(norm),
    }


def compare_adapter(model, modules, folder):
    """The gradients of an adapter's modules, in the GGUF's order of rows, beside ours."""
    shapes = read_shapes(folder)
    tensors = []
    for name, module in modules.items():
        rows = np.argsort(order_rows(model, name))
        for part, gradient in (("lora_a", module.a.grad.numpy()), ("lora_b", module.b.grad.numpy()[rows])):
            whole = f"{name}.weight.{part}"
            tensors.append(compare(whole, read_ours(folder, whole, shapes[whole], "gradient"), gradient))
    return tensors


def gradients(request):
    model = load(request["model"])
    folder = request["ours"]
    model.requires_grad_(not request["lora"])
    modules = adapt(model, folder, request["scale"]) if request["lora"] else {}
    total = 0.0
    for ids, weights in zip(request["sequences"], request["weights"]):
        loss = -(torch.tensor(weights, dtype=torch.float64)[1:] * logprobs_of(model, ids)).sum()
        loss.backward()
        total += loss.item()
    tensors = compare_adapter(model, modules, folder)
    if not request["lora"]:
        for whole, shape in read_shapes(folder).items():
            name = whole.removesuffix(".weight")
            gradient = find_module(model, name).weight.grad.numpy()
            if gradient.ndim == 2:
                gradient = gradient[np.argsort(order_rows(model, name))]
            tensors.append(compare(whole, read_ours(folder, whole, shape, "gradient"), gradient))
    return {"loss": total, "tensors": tensors}


if __name__ == "__main__":
    request = json.load(sys.stdin)
    answer = {"scores": scores, "gradients": gradients}[request["command"]](request)
    json.dump({**answer, "torch": torch.__version__, "transformers": transformers.__version__}, sys.stdout)
