"""A whole GRPO step of the calculator demo: batched rollouts with the real tool, rewards, advantages, two mini-batches.
The sampler's logprobs serve as the old ones: one forward pass less than ours, which scores again with the training graph."""
import time

import torch

from calculator import run_tool, score as score_answer, wrap_result
from generate import Generation, merged_adapter
from lines import serve
from model import Policy
from tokenizer import Tokenizer

state = {}
MAX_TURNS, MAX_RESPONSE, CONTEXT, MICRO_BATCH = 3, 128, 248, 32


def load(path, adapter, threads, learningRate, betas):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Policy(path, adapter, CONTEXT)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=learningRate, betas=tuple(betas), foreach=True)
    state.update(model=model, trained=trained, optimizer=optimizer, tokenizer=Tokenizer(model.metadata))
    return {}


class Rollout:
    def __init__(self, prompt, answer):
        self.ids, self.mask, self.logprobs = list(prompt), [0] * len(prompt), [0.0] * len(prompt)
        self.prompt_length, self.answer = len(prompt), answer
        self.turn, self.queue, self.turns, self.reward = [], [], 0, 0.0

    def add(self, token, logprob, sampled):
        self.ids.append(token)
        self.mask.append(int(sampled))
        self.logprobs.append(logprob if sampled else 0.0)

    def is_full(self, more=0):
        return len(self.ids) - self.prompt_length + more >= MAX_RESPONSE

    def end_turn(self, tokenizer):
        """Runs the tool; True when the conversation goes on."""
        self.turns += 1
        text = tokenizer.decode(self.turn[:-1])
        self.turn = []
        result = run_tool(text)
        if result is None:
            self.reward = score_answer(text, self.answer)
            return False
        self.queue = tokenizer.encode(wrap_result(result))
        return self.turns < MAX_TURNS and not self.is_full(len(self.queue))


@torch.no_grad()
def roll_out(prompts, answers, samples, temperature):
    tokenizer = state["tokenizer"]
    end = tokenizer.ids["<|im_end|>"]
    rollouts = [Rollout(prompt, answer) for prompt, answer in zip(prompts, answers) for _ in range(samples)]
    with merged_adapter(state["model"]):
        generation = Generation(state["model"], prompts, samples, CONTEXT)
        active = rollouts
        while active:
            logprobs = generation.logits.log_softmax(-1)
            drawn = logprobs.argmax(-1) if temperature == 0 else torch.multinomial(logprobs.exp(), 1)[:, 0]
            chosen = logprobs.gather(1, drawn[:, None])[:, 0].tolist()
            kept, tokens = [], []
            for row, (rollout, token, logprob) in enumerate(zip(active, drawn.tolist(), chosen)):
                sampled = not rollout.queue
                if not sampled:
                    token = rollout.queue.pop(0)
                rollout.add(token, logprob, sampled)
                if sampled:
                    rollout.turn.append(token)
                    if (token == end and not rollout.end_turn(tokenizer)) or (token != end and rollout.is_full()):
                        continue
                kept.append(row)
                tokens.append(token)
            if not kept:
                break
            if len(kept) < len(active):
                generation.keep(kept)
                active = [active[row] for row in kept]
            generation.advance(tokens)
    return rollouts


def train(rollouts, advantages):
    tokens = sum(sum(r.mask) for r in rollouts)
    useful = [i for i, advantage in enumerate(advantages) if abs(advantage) > 1e-8]
    useful.sort(key=lambda i: len(rollouts[i].ids))
    for begin in range(0, len(useful), MICRO_BATCH):
        part = useful[begin : begin + MICRO_BATCH]
        length = max(len(rollouts[i].ids) for i in part)
        ids, mask, old = torch.zeros(len(part), length, dtype=torch.long), torch.zeros(len(part), length), torch.zeros(len(part), length)
        for row, i in enumerate(part):
            n = len(rollouts[i].ids)
            ids[row, :n] = torch.tensor(rollouts[i].ids)
            mask[row, :n] = torch.tensor(rollouts[i].mask, dtype=torch.float)
            old[row, :n] = torch.tensor(rollouts[i].logprobs)
        rows = mask[:, 1:].reshape(-1).nonzero()[:, 0]
        weights = torch.tensor([advantages[i] for i in part])[:, None].expand(-1, length - 1).reshape(-1)[rows]
        logprobs = state["model"].logprobs(ids[:, :-1], rows, ids[:, 1:].reshape(-1)[rows])
        ratio = (logprobs - old[:, 1:].reshape(-1)[rows]).exp()
        loss = -torch.minimum(ratio * weights, ratio.clamp(0.8, 1.2) * weights).sum() / tokens
        loss.backward()
    torch.nn.utils.clip_grad_norm_(state["trained"], 1.0)
    state["optimizer"].step()
    state["optimizer"].zero_grad(set_to_none=True)


def step(prompts, answers, samples):
    started = time.perf_counter()
    rollouts = roll_out(prompts, answers, samples, 1.0)
    generated = time.perf_counter()
    rewards = torch.tensor([r.reward for r in rollouts]).view(len(prompts), samples)
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)).reshape(-1).tolist()
    half = len(rollouts) // 2
    train(rollouts[:half], advantages[:half])
    train(rollouts[half:], advantages[half:])
    ended = time.perf_counter()
    return {
        "seconds": ended - started,
        "rollout": generated - started,
        "training": ended - generated,
        "reward": float(rewards.mean()),
        "tokens": sum(len(r.ids) for r in rollouts),
    }


@torch.no_grad()
def score(tokens):
    """Logprobs of tokens[1:]."""
    ids = torch.tensor([tokens])
    rows = torch.arange(len(tokens) - 1)
    return {"logprobs": state["model"].logprobs(ids[:, :-1], rows, ids[0, 1:]).tolist()}


def greedy(prompts):
    rollouts = roll_out(prompts, [""] * len(prompts), 1, 0)
    return {"tokens": [r.ids for r in rollouts]}


def wrap(results):
    return {"tokens": [state["tokenizer"].encode(wrap_result(result)) for result in results]}


serve({"load": load, "step": step, "score": score, "greedy": greedy, "wrap": wrap})
