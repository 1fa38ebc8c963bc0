"""The llama / qwen2 / qwen3 block in plain PyTorch, F32, from a GGUF file; with LoRA, the base is frozen."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from gguf import Gguf

LINEARS = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def make_rope(length, head_size, base):
    inverse = base ** (-torch.arange(0, head_size, 2).float() / head_size)
    angles = torch.arange(length).float()[:, None] * inverse[None]
    return torch.cat([angles.cos(), angles.cos()], -1), torch.cat([-angles.sin(), angles.sin()], -1)


def rotate(x, cos, sin):
    """RoPE in halves (NeoX). `sin` carries the sign of the first half."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


def to_halves(rows, head_size):
    """Rows of a weight whose heads rotate neighbouring pairs, reordered so that they rotate halves."""
    heads = rows.reshape(-1, head_size // 2, 2, *rows.shape[1:])
    return heads.transpose(1, 2).reshape(rows.shape).contiguous()


class Norm(nn.Module):
    def __init__(self, weight, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(weight), epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


class Linear(nn.Module):
    def __init__(self, weight, bias, lora):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)
        self.a, self.b, self.scale = (None, None, 0.0) if lora is None else (nn.Parameter(lora[0]), nn.Parameter(lora[1]), lora[2])

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        return y if self.a is None else y + F.linear(F.linear(x, self.a), self.b * self.scale)


class Policy(nn.Module):
    def __init__(self, path, adapter_path=None, context=2048):
        super().__init__()
        file = Gguf(path)
        adapter = Gguf(adapter_path) if adapter_path else None
        self.metadata = file.metadata
        arch = file.metadata["general.architecture"]
        read = lambda key, default=None: file.metadata.get(f"{arch}.{key}", default)
        self.heads, self.kv_heads = read("attention.head_count"), read("attention.head_count_kv")
        self.head_size = read("attention.key_length", read("embedding_length") // self.heads)
        epsilon = read("attention.layer_norm_rms_epsilon")
        get = lambda name: file.tensor(name) if name in file.infos else None
        norm = lambda name: Norm(get(name), epsilon) if name in file.infos else None
        self.embedding = nn.Parameter(get("token_embd.weight"))
        self.output = nn.Parameter(get("output.weight")) if "output.weight" in file.infos else self.embedding
        self.output_norm = norm("output_norm.weight")
        self.layers = nn.ModuleList()
        for i in range(read("block_count")):
            layer = nn.Module()
            for field, part in LINEARS.items():
                name = f"blk.{i}.{part}"
                weight, bias, lora = get(f"{name}.weight"), get(f"{name}.bias"), None
                if adapter:
                    a, b = adapter.tensor(f"{name}.weight.lora_a"), adapter.tensor(f"{name}.weight.lora_b")
                    lora = [a, b, adapter.metadata["adapter.lora.alpha"] / a.shape[0]]
                if arch == "llama" and field in ("q", "k"):
                    weight = to_halves(weight, self.head_size)
                    if lora:
                        lora[1] = to_halves(lora[1], self.head_size)
                setattr(layer, field, Linear(weight, bias, lora))
            layer.attn_norm, layer.ffn_norm = norm(f"blk.{i}.attn_norm.weight"), norm(f"blk.{i}.ffn_norm.weight")
            layer.q_norm, layer.k_norm = norm(f"blk.{i}.attn_q_norm.weight"), norm(f"blk.{i}.attn_k_norm.weight")
            self.layers.append(layer)
        if adapter:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_(name.endswith((".a", ".b")))
        self.cos, self.sin = make_rope(context, self.head_size, read("rope.freq_base", 10000.0))

    def project(self, layer, x, cos, sin):
        """[B, T, d] -> queries [B, T, H, D] and keys, values [B, T, KV, D]; cos and sin broadcast over heads."""
        B, T, _ = x.shape
        h = layer.attn_norm(x)
        q, k = layer.q(h).view(B, T, self.heads, -1), layer.k(h).view(B, T, self.kv_heads, -1)
        if layer.q_norm is not None:
            q, k = layer.q_norm(q), layer.k_norm(k)
        return rotate(q, cos, sin), rotate(k, cos, sin), layer.v(h).view(B, T, self.kv_heads, -1)

    def feed_forward(self, layer, x):
        h = layer.ffn_norm(x)
        return x + layer.down(F.silu(layer.gate(h)) * layer.up(h))

    def hidden(self, tokens, keep_cache=False):
        """Hidden states [B, T, d] before the output norm; with `keep_cache` also keys and values [B, KV, T, D] of each layer."""
        B, T = tokens.shape
        group = self.heads // self.kv_heads
        x = self.embedding[tokens]
        cos, sin = self.cos[:T, None], self.sin[:T, None]
        mask = torch.full((T, T), float("-inf")).triu(1)
        cache = []
        for layer in self.layers:
            q, k, v = (t.transpose(1, 2) for t in self.project(layer, x, cos, sin))
            if keep_cache:
                cache.append((k, v))
            # Query heads of one KV head as extra rows of one matrix: no repeated keys.
            q = q.reshape(B, self.kv_heads, group * T, -1) * self.head_size**-0.5
            scores = (q @ k.transpose(-1, -2)).view(B, self.kv_heads, group, T, T) + mask
            mixed = scores.softmax(-1).view(B, self.kv_heads, group * T, T) @ v
            x = x + layer.o(mixed.view(B, self.heads, T, -1).transpose(1, 2).reshape(B, T, -1))
            x = self.feed_forward(layer, x)
        return (x, cache) if keep_cache else x

    def logits(self, hidden):
        return F.linear(self.output_norm(hidden), self.output)

    def logprobs(self, tokens, rows, targets):
        """Logprobs of `targets`, predicted at `rows` of the flattened [B, T] tokens: full logits of those rows only."""
        hidden = self.hidden(tokens)
        logits = self.logits(hidden.reshape(-1, hidden.shape[-1])[rows])
        return -F.cross_entropy(logits, targets, reduction="none")
