"""Batched sampling with a KV cache: each prompt is evaluated once, then all samples advance together, a token a step."""
import contextlib

import torch
import torch.nn as nn


@contextlib.contextmanager
def merged_adapter(model):
    """LoRA folded into copies of the weights: generation then does two products less a layer."""
    linears = [m for m in model.modules() if getattr(m, "a", None) is not None]
    saved = [(m.weight, m.a, m.b) for m in linears]
    for m in linears:
        m.weight, m.a = nn.Parameter(m.weight + m.scale * m.b @ m.a, requires_grad=False), None
    try:
        yield
    finally:
        for m, (weight, a, b) in zip(linears, saved):
            m.weight, m.a, m.b = weight, a, b


class Generation:
    """Sequences in lockstep; `keep` drops those that ended."""

    def __init__(self, model, prompts, samples, length):
        self.model = model
        longest = max(map(len, prompts))
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        for row, prompt in zip(ids, prompts):
            row[: len(prompt)] = torch.tensor(prompt)
        hidden, cache = model.hidden(ids, keep_cache=True)
        self.cache = []
        for pair in cache:
            rows = []
            for t in pair:
                room = torch.zeros(len(prompts) * samples, t.shape[1], length, t.shape[3])
                room[:, :, :longest] = t.repeat_interleave(samples, 0)
                rows.append(room)
            self.cache.append(rows)
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        last = hidden[torch.arange(len(prompts)), lengths - 1]
        self.logits = model.logits(last).repeat_interleave(samples, 0)
        self.positions = lengths.repeat_interleave(samples)

    def keep(self, rows):
        index = torch.tensor(rows)
        self.positions = self.positions[index]
        self.cache = [[k[index], v[index]] for k, v in self.cache]

    def advance(self, tokens):
        """One token a sequence; afterwards `logits` are those of the next."""
        model, positions = self.model, self.positions
        group, batch = model.heads // model.kv_heads, torch.arange(len(tokens))
        x = model.embedding[torch.tensor(tokens)][:, None]
        cos, sin = model.cos[positions][:, None, None], model.sin[positions][:, None, None]
        seen = int(positions.max()) + 1
        mask = torch.zeros(len(tokens), seen).masked_fill_(torch.arange(seen)[None] > positions[:, None], float("-inf"))
        for layer, (keys, values) in zip(model.layers, self.cache):
            q, k, v = model.project(layer, x, cos, sin)
            keys[batch, :, positions], values[batch, :, positions] = k[:, 0], v[:, 0]
            q = q.reshape(len(tokens), model.kv_heads, group, -1) * model.head_size**-0.5
            scores = q @ keys[:, :, :seen].transpose(-1, -2) + mask[:, None, None]
            x = x + layer.o((scores.softmax(-1) @ values[:, :, :seen]).reshape(len(tokens), 1, -1))
            x = model.feed_forward(layer, x)
        self.logits = model.logits(x[:, 0])
        self.positions = positions + 1
