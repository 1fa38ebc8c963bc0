import { BaseInteraction } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { makeFakeRollout } from "../testing/index.js";

class Persistent extends BaseInteraction {
  override async startInteraction() {}
  override async generateResponse(_id: string, messages: readonly unknown[]) {
    return { shouldTerminate: messages.length > 4, content: `more, please (${messages.length})`, score: 1 };
  }
  override async finalizeInteraction() {}
}

/** Like Qwen3's: reasoning is dropped from every assistant turn but the last. */
const forgetful =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
/** Marks the last user message, as templates do that print tools before it. */
const moving =
  "{% for m in messages %}{% if m.role == 'user' %}{% set ns = namespace(last=true) %}{% for n in messages[loop.index:] %}{% if n.role == 'user' %}{% set ns.last = false %}{% endif %}{% endfor %}{% if ns.last %}TOOLS {% endif %}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

function make(chatTemplate: string | undefined, useInferenceChatTemplate: boolean) {
  const seen: string[] = [];
  const rollout = makeFakeRollout({
    reply: ({ text }) => {
      const turn = seen.push(text) - 1;
      return `<think>thought ${turn}</think>said ${turn}`;
    },
    engine: { chatTemplate },
    interactions: [new Persistent({}, "test")],
    multiTurn: { useInferenceChatTemplate },
  });
  return { ...rollout, seen };
}

describe("use_inference_chat_template", () => {
  it("semantic 8: each turn sees production's rendering, and only tokens sampled in it are trained on", async () => {
    const { engine, options, run, seen } = make(forgetful, true);
    const [t] = await run();
    t!.messages.forEach((message, i) => {
      if (message.role !== "assistant") return;
      const rendered = options.tokenizer.render(t!.messages.slice(0, i), [], true);
      expect(seen[(i - 1) / 2]).toBe(rendered);
    });
    expect(seen).toHaveLength(3);
    // The first two turns lost their reasoning after they were sampled; the third is unchanged.
    const sampled = engine.detokenize([...t!.tokenIds].filter((_, i) => t!.responseMask[i]));
    expect(sampled).toBe("<think>thought 2</think>said 2<|im_end|>");
    expect(engine.detokenize(t!.tokenIds)).toBe(options.tokenizer.render(t!.messages.slice(0, 5), [], true) + sampled);
    expect(t!.metrics).toMatchObject({ rewritten_turns: 2 });
    expect(t!.metrics.rewritten_tokens).toBeGreaterThan(0);
    expect(t!.metrics.tokenization_mismatch).toBeUndefined();
    // Every logprob is conditioned on the prefix in the record.
    const [scores] = await engine.score([{ tokenIds: t!.tokenIds }]);
    t!.rolloutLogprobs.forEach((logprob, i) => {
      expect(logprob).toBe(t!.responseMask[i] ? scores!.logprobs[i] : 0);
    });
    // Rewards of rewritten turns are kept, at the nearest trained token.
    expect(t!.turnScores.map((s) => s.value)).toEqual([1, 1, 1]);
    for (const { tokenIndex } of t!.turnScores) expect(t!.responseMask[tokenIndex]).toBe(1);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("semantic 8: a template that changes nothing gives the same tokens with and without", async () => {
    const [plain] = await make(undefined, false).run();
    const [viewed] = await make(undefined, true).run();
    expect([...viewed!.tokenIds]).toEqual([...plain!.tokenIds]);
    expect([...viewed!.responseMask]).toEqual([...plain!.responseMask]);
    expect(viewed!.metrics.rewritten_turns).toBeUndefined();
  });

  it("semantic 8: evaluates again from the turn where the change is, not from the start", async () => {
    const { engine, run } = make(forgetful, true);
    const [t] = await run();
    expect(engine.counts.prefillTokens).toBe(t!.metrics.prefill_tokens);
    const total = t!.tokenIds.length + t!.metrics.rewritten_tokens!;
    expect(t!.metrics.prefill_tokens! + t!.metrics.decode_tokens!).toBeLessThan(2 * total);
  });

  it("semantic 8: a prompt that changes is evaluated afresh", async () => {
    const { engine, options, run, seen } = make(moving, true);
    const [t] = await run();
    expect(t!.error).toBeUndefined();
    expect(seen[1]).toBe(options.tokenizer.render(t!.messages.slice(0, 3), [], true));
    expect(engine.detokenize(t!.tokenIds)).toBe(`${seen[2]}<think>thought 2</think>said 2<|im_end|>`);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });
});
