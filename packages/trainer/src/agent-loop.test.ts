import { join } from "node:path";
import type { LlamaModel } from "@cria/engine";
import { loadModel } from "@cria/engine";
import { loadDataset, type RolloutOptions, runRollouts } from "@cria/rollout";
import { defaultMultiTurn } from "@cria/rollout/internal";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type BaseTool, CalculatorTool, type ToolResult } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
let model: LlamaModel;
let tokenizer: DeltaTokenizer;
let rows: Awaited<ReturnType<typeof loadDataset>>;

beforeAll(async () => {
  model = await loadModel({
    path: join(root, "models", "cria-tiny.gguf"),
    contextSize: 256,
    maxSequences: 32,
    threads: 1,
    lora: { rank: 4 },
  });
  tokenizer = DeltaTokenizer.forModel(model);
  rows = (await loadDataset([join(root, "examples/calculator/data/val.jsonl")])).slice(0, 12);
});
afterAll(() => model.dispose());

/** Counts its instances and misbehaves as told. */
class UnrulyTool extends CalculatorTool {
  created = 0;
  released = 0;
  constructor(private readonly behave: (call: number) => Promise<ToolResult> | ToolResult) {
    super();
  }
  override async create(instanceId: string) {
    this.created++;
    return { instanceId };
  }
  override async execute(): Promise<ToolResult> {
    return this.behave(this.calls++);
  }
  override async release() {
    this.released++;
  }
  private calls = 0;
}

function options(tool: BaseTool, more: Partial<RolloutOptions> = {}): RolloutOptions {
  return {
    tokenizer,
    tools: new Map([["calculator", tool]]),
    multiTurn: { ...defaultMultiTurn, maxAssistantTurns: 3, toolTimeoutS: 0.2 },
    reward: null,
    n: 4,
    temperature: 1,
    topP: 1,
    topK: 0,
    seed: 1,
    step: 1,
    maxPromptLength: 128,
    responseLength: 100,
    truncation: "error",
    defaultAgentLoop: "tool_agent",
    ...more,
  };
}

const answer = (text: string): ToolResult => ({ response: { text }, reward: 0, metrics: {} });

describe("rollouts on the embedded policy", () => {
  it("are ordered, masked, and score as they were sampled", async () => {
    const trajectories = await runRollouts(model, rows, options(new CalculatorTool()));
    expect(trajectories.map((t) => [t.rowIndex, t.sampleIndex])).toEqual(
      rows.flatMap((r) => [0, 1, 2, 3].map((k) => [r.index, k])),
    );
    const scores = await model.score(trajectories.map((t) => ({ tokenIds: t.tokenIds, from: t.promptLength })));
    let toolTurns = 0;
    trajectories.forEach((t, i) => {
      expect(t.responseMask.slice(0, t.promptLength).includes(1)).toBe(false);
      expect(t.tokenIds.length).toBe(t.responseMask.length);
      for (let k = 0; k < t.tokenIds.length; k++) {
        if (t.responseMask[k]) expect(Math.abs(scores[i]!.logprobs[k]! - t.rolloutLogprobs[k]!)).toBeLessThan(1e-4);
        else expect(t.rolloutLogprobs[k]).toBe(0);
      }
      // Sampled text is exactly what the masked-in tokens say; the whole is what the template renders.
      const sampled = model.detokenize([...t.tokenIds].filter((_, k) => t.responseMask[k]));
      const spoken = t.messages.slice(2).filter((m) => m.role === "assistant");
      expect(sampled.replaceAll("<|im_end|>", "")).toBe(spoken.map((m) => m.content).join(""));
      expect(t.metrics.tokenization_mismatch ?? 0).toBe(0);
      toolTurns += t.messages.filter((m) => m.role === "tool").length;
      // The group's first sample paid for the prompt; nothing is evaluated twice.
      const shared = t.sampleIndex === 0 ? t.promptLength : 0;
      expect(t.metrics.prefill_tokens! - shared).toBeLessThan(t.tokenIds.length - t.promptLength);
    });
    expect(toolTurns).toBeGreaterThan(2);
  });

  it("do not depend on how many run at once", async () => {
    const wide = await runRollouts(model, rows, options(new CalculatorTool()));
    await model.flushCache();
    const narrow = await runRollouts(model, rows, options(new CalculatorTool(), { concurrency: 3 }));
    expect(narrow.map((t) => [...t.tokenIds])).toEqual(wide.map((t) => [...t.tokenIds]));
    expect(narrow.map((t) => [...t.rolloutLogprobs])).toEqual(wide.map((t) => [...t.rolloutLogprobs]));
  });

  it("a tool that throws, hangs or answers too much becomes a message; every instance is released", async () => {
    const tool = new UnrulyTool(async (call) => {
      if (call % 3 === 0) throw new Error("broken");
      if (call % 3 === 1) return new Promise<ToolResult>(() => undefined);
      return answer("9".repeat(100_000));
    });
    const trajectories = await runRollouts(model, rows, options(tool, { responseLength: 128 }));
    expect(tool.created).toBe(rows.length * 4);
    expect(tool.released).toBe(tool.created);
    const total = (name: string) => trajectories.reduce((sum, t) => sum + (t.metrics[name] ?? 0), 0);
    expect(total("tool_exception")).toBeGreaterThan(0);
    expect(total("tool_timeout")).toBeGreaterThan(0);
    expect(total("tool_truncated")).toBeGreaterThan(0);
    for (const t of trajectories) expect(t.tokenIds.length - t.promptLength).toBeLessThanOrEqual(128);
  });

  it("a text that does not fit ends the conversation and is left out", async () => {
    const trajectories = await runRollouts(
      model,
      rows,
      options(new UnrulyTool(() => answer("1")), { responseLength: 40 }),
    );
    const cut = trajectories.filter((t) => t.finishReason === "length");
    expect(cut.length).toBeGreaterThan(0);
    for (const t of cut) expect(t.responseMask.at(-1)).toBe(1);
  });

  it("an abort ends all of them, and disposes every sequence", async () => {
    const controller = new AbortController();
    const tool = new UnrulyTool(() => new Promise<ToolResult>(() => undefined));
    const running = runRollouts(
      model,
      rows,
      options(tool, { signal: controller.signal, multiTurn: { ...defaultMultiTurn, toolTimeoutS: 60 } }),
    );
    await vi.waitFor(() => expect(tool.created).toBeGreaterThan(tool.released));
    controller.abort();
    await running.catch(() => undefined);
    expect(tool.released).toBe(tool.created);
  });

  it("refuses a prompt that is too long, and names the row", async () => {
    await expect(
      runRollouts(model, rows, options(new CalculatorTool(), { maxPromptLength: 20 })),
    ).rejects.toMatchObject({ code: "data/prompt-too-long", subject: expect.stringContaining("row 0") });
  });
});
