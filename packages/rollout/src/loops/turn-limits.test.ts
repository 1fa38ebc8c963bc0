import type { GenerateOptions } from "@cria/core";
import { BaseInteraction, CalculatorTool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { type FakeRolloutOptions, makeFakeRollout } from "../testing/index.js";

const call = '<tool_call>{"name": "calculator", "arguments": {"expression": "6*7"}}</tool_call>';

class Asking extends BaseInteraction {
  override async startInteraction() {}
  override async generateResponse(_id: string, messages: readonly unknown[]) {
    return { shouldTerminate: messages.length > 3, content: "And?", score: 1 };
  }
  override async finalizeInteraction() {}
}

function make(replies: readonly string[], more: Partial<FakeRolloutOptions>) {
  const asked: GenerateOptions[] = [];
  const rollout = makeFakeRollout({
    reply: ({ turn, options }) => {
      asked.push(options);
      return replies[turn] ?? "done";
    },
    tools: [new CalculatorTool()],
    ...more,
  });
  const play = async () => {
    const [t] = await rollout.run();
    const text = (bit: 0 | 1) =>
      rollout.engine.detokenize([...t!.tokenIds].filter((_, i) => i >= t!.promptLength && t!.responseMask[i] === bit));
    return { t: t!, sampled: text(1), inserted: text(0) };
  };
  return { ...rollout, asked, play };
}

describe("stop strings", () => {
  it("end a turn and stay in it: mask 1; the end-of-turn token comes with the next text, mask 0", async () => {
    const { asked, engine, options, play } = make([`Let me see. ${call} and more`, "42 STOP!"], {
      stop: ["</tool_call>", "STOP"],
      minP: 0.1,
    });
    const { t, sampled, inserted } = await play();
    expect(sampled).toBe(`Let me see. ${call}42 STOP`);
    expect(inserted).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\n<tool_response>\n42\n/);
    expect(t).toMatchObject({ finishReason: "stop", metrics: { tool_calls: 1, tool_errors: 0 } });
    expect(t.metrics.tokenization_mismatch).toBeUndefined();
    // The record equals the model's context.
    expect(t.messages[1]!.content).toBe(`Let me see. ${call}`);
    expect(t.messages.at(-1)!.content).toBe("42 STOP");
    expect(options.tokenizer.render(t.messages, [options.tools.get("calculator")!.schema])).toBe(
      `${engine.detokenize(t.tokenIds)}<|im_end|>\n`,
    );
    for (const given of asked) expect(given).toMatchObject({ stopStrings: ["</tool_call>", "STOP"], minP: 0.1 });
  });

  it("are not passed to the engine without a setting", async () => {
    const { asked, play } = make(["x"], {});
    await play();
    expect(asked[0]).not.toHaveProperty("stopStrings");
    expect(asked[0]!.minP).toBe(0);
  });

  it("have the same continuation in production's view", async () => {
    const { engine, options, play } = make([`${call} and more`], {
      stop: ["</tool_call>"],
      multiTurn: { useInferenceChatTemplate: true },
    });
    const { t, sampled } = await play();
    expect(sampled).toBe(`${call}done<|im_end|>`);
    expect(t.metrics.rewritten_turns).toBeUndefined();
    const schemas = [options.tools.get("calculator")!.schema];
    expect(`${engine.detokenize(t.tokenIds)}\n`).toBe(options.tokenizer.render(t.messages, schemas));
  });

  it("a turn that an interaction answers goes on likewise", async () => {
    const { play } = make(["one. two.", "three. four."], { stop: ["."], interactions: [new Asking({}, "test")] });
    const { t, sampled, inserted } = await play();
    expect(sampled).toBe("one.three.");
    expect(inserted).toBe("<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n");
    expect(t.turnScores.map((score) => score.value)).toEqual([1, 1]);
    for (const { tokenIndex } of t.turnScores) expect(t.responseMask[tokenIndex]).toBe(1);
  });
});

describe("max_tokens_per_turn", () => {
  const long = "x".repeat(500);

  it("a turn that is cut is final: length", async () => {
    const { asked, play } = make([long], { maxTokensPerTurn: 20 });
    const { t, sampled, inserted } = await play();
    expect([sampled, inserted]).toEqual(["x".repeat(20), ""]);
    expect(t).toMatchObject({ finishReason: "length", numTurns: 2, metrics: { cut_turns: 1 } });
    expect(asked.map((given) => given.maxTokens)).toEqual([20]);
  });

  it("a cut turn with a complete call runs it; a call that the cut broke is ignored", async () => {
    const first = `${call} <tool_call>{"name": "calc`;
    const { t, sampled, inserted } = await make([first + long], { maxTokensPerTurn: first.length - 30 }).play();
    expect(sampled).toContain(`${call} <tool_call>{"name": "calc`);
    expect(inserted).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\n<tool_response>\n42\n/);
    expect(t).toMatchObject({ finishReason: "stop", metrics: { cut_turns: 1, tool_calls: 1, tool_errors: 0 } });
    const broken = await make([call], { maxTokensPerTurn: 30 }).play();
    expect(broken.t).toMatchObject({ finishReason: "length", metrics: { cut_turns: 1, tool_calls: 0 } });
  });

  it("a cut turn without a call is answered by an interaction that is due", async () => {
    const { t, inserted } = await make([long, "fine"], {
      maxTokensPerTurn: 20,
      interactions: [new Asking({}, "test")],
    }).play();
    expect(inserted).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\nAnd\?/);
    expect(t).toMatchObject({ finishReason: "stop", metrics: { cut_turns: 1, interaction_turns: 2 } });
    const undue = { interactionInterval: 3 };
    const final = await make([long], {
      maxTokensPerTurn: 20,
      interactions: [new Asking({}, "test")],
      multiTurn: undue,
    }).play();
    expect(final.t).toMatchObject({ finishReason: "length", metrics: { cut_turns: 1 } });
  });

  it("a turn that ends at its last token is not cut, and the response's own budget ends all", async () => {
    const fits = await make(["x".repeat(19)], { maxTokensPerTurn: 20 }).play();
    expect(fits.t).toMatchObject({ finishReason: "stop", metrics: { generate_s: expect.any(Number) } });
    expect(fits.t.metrics.cut_turns).toBeUndefined();
    const budget = await make([call + long], { maxTokensPerTurn: 300, responseLength: 200 }).play();
    expect(budget.t).toMatchObject({ finishReason: "length", metrics: { tool_calls: 0 } });
    expect(budget.t.metrics.cut_turns).toBeUndefined();
  });
});

describe("thinking", () => {
  it("a call quoted inside of it is not run, also where the prompt has opened it and where it never ends", async () => {
    const quoted = `I might write ${call}`;
    const chatTemplate =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}";
    for (const engine of [{}, { chatTemplate }]) {
      const open = "chatTemplate" in engine ? "" : "<think>";
      for (const said of [`${open}${quoted}</think>no.`, `${open}${quoted}`]) {
        const { t } = await make([said], { engine }).play();
        expect(t).toMatchObject({ finishReason: "stop", metrics: { tool_calls: 0 }, numTurns: 2 });
      }
      const { t, sampled } = await make([`${open}${quoted}</think>${call}`], {
        engine,
        multiTurn: { trainOnToolCalls: false },
      }).play();
      expect(t.metrics).toMatchObject({ tool_calls: 1, tool_errors: 0 });
      // Only the call that ran is masked, not the one quoted in the thoughts.
      expect(sampled).toBe(`${open}${quoted}</think><|im_end|>done<|im_end|>`);
    }
  });
});
