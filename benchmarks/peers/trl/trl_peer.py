"""TRL's GRPOTrainer with tools, on the CPU, beside ours: the same weights, adapter, rows, prompt text, tools and rewards.

Answers one JSON line with one (../torch/lines.py). While it works it asks for what tools answer and conversations earn, by a line
{"ask": "tool" | "reward", ...}, and reads the answer: both sides are served by the same code.
"""

import inspect
import json
import logging
import os
import pathlib
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")
output, sys.stdout = sys.stdout, sys.stderr

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402
from trl.chat_template_utils import qwen3_template  # noqa: E402

transformers.logging.set_verbosity_error()
logging.getLogger("trl").setLevel(logging.ERROR)
state = {}

# The file's own template; calls are written out only where TRL renders some by itself, to find the text around a tool's answer.
TEMPLATE = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}\
{% for call in message.get('tool_calls') or [] %}{{ '<tool_call>' + call.function | tojson + '</tool_call>' }}{% endfor %}\
{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def ask(what, **more):
    output.write(json.dumps({"ask": what, **more}) + "\n")
    output.flush()
    return json.loads(sys.stdin.readline())["answer"]


def make_environment(names):
    """An environment whose methods are all tools there are; which of them a row offers is for the other side to know."""

    class Tools:
        def reset(self, row, **_):
            self.row = row

    def make(name):
        def call(self, **arguments):
            return ask("tool", row=self.row, name=name, arguments=arguments)

        call.__name__, call.__qualname__, call.__doc__ = name, f"Tools.{name}", name
        # The prompt lists the tools already: TRL need not describe their arguments.
        call.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
        return call

    for name in names:
        setattr(Tools, name, make(name))
    return Tools


def reward(completion_ids, row, **_):
    decode = state["tokenizer"].decode
    return [ask("reward", row=r, text=decode(ids)) for ids, r in zip(completion_ids, row)]


class TimedTrainer(GRPOTrainer):
    """Notes when parts begin and end, and counts what was sampled."""

    def _generate(self, prompts):
        began = time.perf_counter()
        result = super()._generate(prompts)
        state["rollout"] += time.perf_counter() - began
        state["tokens"] += sum(map(sum, result[2]))
        return result

    def _calculate_rewards(self, *given):
        rewards = super()._calculate_rewards(*given)
        state["reward"] = rewards.mean().item()
        return rewards


class Steps(TrainerCallback):
    def on_step_begin(self, *_, **__):
        state.update(began=time.perf_counter(), rollout=0.0, tokens=0)

    def on_step_end(self, *_, **__):
        seconds = time.perf_counter() - state["began"]
        rollout = state["rollout"]
        step = {"seconds": seconds, "rollout": rollout, "training": seconds - rollout, "tokens": state["tokens"], "reward": state["reward"]}
        state["steps"].append(step)
        print(f"TRL, step {len(state['steps'])}: {seconds:.1f} s, mean reward {state['reward']:.2f}", flush=True)


def find_lora(name):
    _, layer, kind = name.split(".")
    return state["model"].base_model.model.get_submodule(f"model.layers.{layer}.{MODULES[kind]}")


def order_rows(name):
    """Of each row of transformers' weight, its row in the GGUF, which pairs the axes that RoPE turns."""
    config, kind = state["model"].config, name.split(".")[2]
    rows = find_lora(name).weight.shape[0]
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(kind)
    if heads is None:
        return np.arange(rows)
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def each_tensor(folder):
    """Of each of our tensors: its file, its shape, the parameter here, and the order of its rows."""
    for entry in json.loads((pathlib.Path(folder) / "index.json").read_text()):
        name, part = entry["name"].removesuffix(".lora_a").removesuffix(".lora_b").removesuffix(".weight"), entry["name"][-1]
        module = find_lora(name)
        weight = (module.lora_A if part == "a" else module.lora_B)["default"].weight
        order = np.arange(weight.shape[0]) if part == "a" else order_rows(name)
        yield pathlib.Path(folder) / f"{entry['name']}.value", entry["shape"], weight, order


def load(path, adapter, lora, threads, bfloat16=False):
    torch.set_num_threads(threads)
    file = pathlib.Path(path)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16 if bfloat16 else torch.float32)
    model.is_quantized = False  # transformers refuses to train what was in a GGUF, quantized or not
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, qwen3_template
    targets = [name.rpartition(".")[2] for name in MODULES.values()]
    model = get_peft_model(model, LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], lora_dropout=0.0, target_modules=targets))
    state.update(model=model, tokenizer=tokenizer, path=path)
    with torch.no_grad():
        for source, shape, weight, order in each_tensor(adapter):
            weight.copy_(torch.from_numpy(np.fromfile(source, dtype=np.float32).reshape(shape[::-1])[order]))
    return {"trl": trl.__version__, "torch": torch.__version__, "transformers": transformers.__version__}


def prompts(rows):
    encode = state["tokenizer"].apply_chat_template
    return {"tokens": [encode(row, add_generation_prompt=True, tokenize=True, return_dict=False) for row in rows]}


@torch.no_grad()
def score(tokens):
    """Logprobs of tokens[1:]."""
    logprobs = state["model"](torch.tensor([tokens])).logits[0, :-1].double().log_softmax(-1)
    return {"logprobs": logprobs[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])].tolist()}


def train(rows, tools, settings, output_dir, turns):
    """As many steps as the settings say, one after the other."""
    state["steps"] = []
    args = GRPOConfig(output_dir=output_dir, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, logging_steps=10**9, **settings)
    args.max_tool_calling_iterations = turns - 1
    trainer = TimedTrainer(
        state["model"],
        reward,
        args,
        train_dataset=Dataset.from_list([{"prompt": prompt, "row": row} for row, prompt in enumerate(rows)]),
        processing_class=state["tokenizer"],
        environment_factory=make_environment(tools),
        callbacks=[Steps()],
    )
    trainer.train()
    return {"steps": state["steps"], "peakMemory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def save(folder, index):
    """Writes the adapter's values where `load` reads them."""
    os.makedirs(folder, exist_ok=True)
    (pathlib.Path(folder) / "index.json").write_text(json.dumps(index))
    for target, _, weight, order in each_tensor(folder):
        weight.detach().float().numpy()[np.argsort(order)].tofile(target)
    return {}


if __name__ == "__main__":
    sys.path.append(str(pathlib.Path(__file__).parents[1] / "torch"))
    sys.stdout = output
    from lines import serve

    serve({"load": load, "prompts": prompts, "score": score, "train": train, "save": save})
