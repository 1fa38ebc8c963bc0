"""Forward, backward and AdamW over whole batches: the peer of the `train` benchmark."""
import time

import torch

from lines import serve
from model import Policy

state = {}


def load(path, adapter=None, threads=1):
    torch.set_num_threads(threads)
    model = Policy(path, adapter)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, foreach=True)
    state.update(model=model, trained=trained, optimizer=optimizer)
    return {"trained": sum(p.numel() for p in trained)}


def step(tokens, first, advantages, apply):
    """Loss -mean(advantage * logprob) over tokens from index `first` on; rows of equal length. Times are inside: no JSON."""
    started = time.perf_counter()
    ids = torch.tensor(tokens)
    B, T = ids.shape
    inputs, targets = ids[:, :-1], ids[:, first:].reshape(-1)
    rows = (torch.arange(B)[:, None] * (T - 1) + torch.arange(first - 1, T - 1)[None]).reshape(-1)
    weights = torch.tensor(advantages).repeat_interleave(T - first)
    loss = -(weights * state["model"].logprobs(inputs, rows, targets)).mean()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(state["trained"], 1.0)
    if apply:
        state["optimizer"].step()
    state["optimizer"].zero_grad(set_to_none=True)
    return {"loss": float(loss), "gradNorm": float(norm), "seconds": time.perf_counter() - started}


serve({"load": load, "step": step})
