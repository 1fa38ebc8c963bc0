"""PyTorch with transformers and PEFT on the shapes of measure.ts: random weights, nothing is downloaded.
    peer.py {cases.json} {full|tiny} {cuda|cpu}
Prints lines of JSON like measure.ts: {"case", "metric", "peer", "value"}. The base is in bf16 and frozen, LoRA in F32 under
autocast, as PEFT users train; generation is transformers' own, greedy of equal lengths, KV cache on."""
import json
import statistics
import sys
import time

cases, size_name, device = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
size = cases[size_name]

try:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM
except ImportError as error:
    print(json.dumps({"skipped": f"PyTorch + PEFT: {error}"}))
    sys.exit(0)

shape = size["model"]
name = shape["name"]
torch.manual_seed(0)


def say(case, value):
    print(json.dumps({"case": case, "metric": "tokens/s", "peer": "PyTorch + PEFT, bf16", "value": value}), flush=True)


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def make_model():
    config = Qwen2Config(
        vocab_size=shape["vocabulary"], hidden_size=shape["embedding"], intermediate_size=shape["feedForward"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["kvHeads"],
        head_dim=shape["headSize"], max_position_embeddings=shape["contextLength"], tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )
    return Qwen2ForCausalLM(config).to(device=device, dtype=torch.bfloat16)


def measure_decode(model):
    options, model = size["decode"], model.eval()
    for count in options["sequences"]:
        prompts = torch.randint(0, shape["vocabulary"], (count, options["prompt"]), device=device)
        mask = torch.ones_like(prompts)
        rates = []
        # The prompt's own time is taken off: a run that samples a single token.
        for round_ in range(-1, options["rounds"]):
            seconds = []
            for tokens in (1, options["tokens"] + 1):
                wait()
                started = time.perf_counter()
                with torch.inference_mode():
                    model.generate(prompts, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
                wait()
                seconds.append(time.perf_counter() - started)
            if round_ >= 0:
                rates.append(count * options["tokens"] / max(seconds[1] - seconds[0], 1e-9))
        for kind in size["types"]:
            say(f"decode {name} {kind}, {count} sequences", statistics.median(rates))


def measure_train(model):
    options = size["train"]
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    lora = LoraConfig(r=options["rank"], lora_alpha=2 * options["rank"], target_modules=targets, task_type="CAUSAL_LM")
    model = get_peft_model(model, lora)
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.data = p.data.float()
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    for batch in options["batches"]:
        rows, length = batch["rows"], batch["length"]
        tokens = torch.randint(0, shape["vocabulary"], (rows, length), device=device)
        advantages = torch.tensor([-0.5 if row % 2 else 1.0 for row in range(rows)], device=device)[:, None]
        first = length // 2
        rates = []
        for round_ in range(-2, options["rounds"]):
            wait()
            started = time.perf_counter()
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                hidden = model.get_base_model().model(tokens).last_hidden_state
                # Logits of the loss' rows alone, as ours.
                logits = model.get_base_model().lm_head(hidden[:, first - 1 : -1])
            logprobs = torch.log_softmax(logits.float(), -1).gather(-1, tokens[:, first:, None])[..., 0]
            loss = -(advantages * logprobs).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            wait()
            if round_ >= 0:
                rates.append(rows * length / (time.perf_counter() - started))
        for kind in size["types"]:
            say(f"train {name} {kind}, LoRA r{options['rank']}, {rows} x {length}", statistics.median(rates))


model = make_model()
measure_decode(model)
measure_train(model)
