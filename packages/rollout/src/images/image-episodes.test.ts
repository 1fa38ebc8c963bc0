import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ImageSource, listImages, loadImage, type Trajectory } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import { fakeImageFile } from "@cria/core/testing";
import { BaseInteraction, type ToolResponse, tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentLoopContext, type AgentLoopOutput, type RewardInfo, registerAgentLoop } from "../index.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";

const folder = mkdtempSync(join(tmpdir(), "cria-episodes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Two vectors, and the engine's marks around them. */
const small = fakeImageFile(32, 16);
const large = fakeImageFile(64, 64, 1);
const damaged = fakeImageFile(16, 16, 9);
const hashOf = async (bytes: Uint8Array) => (await loadImage({ bytes })).hash;
const damagedHash = await hashOf(damaged);

const see = { images: { isDamaged: ({ hash }: { hash: string }) => hash === damagedHash } };
const call = '<tool_call>{"name": "look", "arguments": {}}</tool_call>';
const ask = (images: unknown[], content = "<image>what?") => makeRow({ prompt: [{ role: "user", content }], images });

function makeTool(response: ToolResponse) {
  return tool({
    name: "look",
    description: "Looks.",
    inputSchema: z.object({}),
    execute: () => response as { text: string },
  });
}

/** An episode that calls the tool once. */
async function play(response: ToolResponse, more: Partial<FakeRolloutOptions> = {}) {
  const rollout = makeFakeRollout({
    reply: ({ turn }) => (turn === 0 ? call : "done"),
    engine: see,
    tools: [makeTool(response)],
    ...more,
  });
  const [t] = await rollout.run();
  return { ...rollout, t: t!, answer: t!.messages[2]?.content };
}

/** Size in tokens of each image of a trajectory, and how many of these are vectors. */
function describeImages({ images = [], tokenIds }: Trajectory, vocabSize: number) {
  return images.map(({ image, start, length }) => {
    const own = tokenIds.subarray(start, start + length);
    return { hash: image.hash, length, vectors: own.filter((id) => id >= vocabSize).length };
  });
}

describe("a prompt with images", () => {
  it("shows them: their tokens stand in it, are not trained on, and the trajectory names them", async () => {
    const { engine, run } = makeFakeRollout({ reply: () => "seen", engine: see, n: 3 });
    const trajectories = await run([
      ask([{ bytes: small }, { bytes: large }, { bytes: small }], "<image>a<image>b<image>"),
    ]);
    const { vocabSize } = engine.info;
    const [first, second] = [await hashOf(small), await hashOf(large)];
    for (const t of trajectories) {
      expect(t.error).toBeUndefined();
      expect(describeImages(t, vocabSize)).toEqual([
        { hash: first, length: 4, vectors: 2 },
        { hash: second, length: 18, vectors: 16 },
        { hash: first, length: 4, vectors: 2 },
      ]);
      expect([...t.responseMask].some((bit, i) => bit === 1 && t.tokenIds[i]! >= vocabSize)).toBe(false);
      expect(engine.detokenize(t.tokenIds.subarray(0, t.promptLength))).toContain(
        "<|image_start|><|image_end|>a<|image_start|><|image_end|>b<|image_start|><|image_end|>",
      );
      expect(listImages(t.messages[0]!.content).every(({ image }) => isLoaded(image))).toBe(true);
    }
    // A group reads its images once, and its samples share them.
    expect(trajectories[0]!.images![0]!.image).toBe(trajectories[2]!.images![0]!.image);
    expect(engine.images!.stats().encoded).toBe(2);
  });

  it("reads their files when the conversation begins, beside the rows' file", async () => {
    const row = { ...ask(["a.png"]), folder };
    const { run } = makeFakeRollout({ reply: () => "seen", engine: see });
    const [missing] = await run([row]);
    expect(missing).toMatchObject({
      finishReason: "aborted",
      error: expect.stringMatching(/row 0[\s\S]*cannot be read/),
    });
    writeFileSync(join(folder, "a.png"), small);
    expect((await run([row]))[0]!.images).toHaveLength(1);
  });

  it("fails alone if a file is damaged, not an image, or beyond the limits", async () => {
    for (const [image, options, reason] of [
      [{ bytes: damaged }, {}, /cannot be decoded/],
      [{ bytes: Uint8Array.of(1, 2) }, {}, /is not an image/],
      [{ bytes: large }, { images: { maxPixels: 600 } }, /has too many pixels/],
      [{ bytes: Buffer.concat([large, large]) }, { images: { maxBytes: 40 } }, /is too large/],
    ] as const) {
      const warnings: string[] = [];
      const { engine, run } = makeFakeRollout({
        reply: () => "seen",
        engine: see,
        n: 2,
        onWarning: (warning) => warnings.push(warning),
        ...options,
      });
      const trajectories = await run([ask([image]), ask([{ bytes: small }])]);
      expect(trajectories.map(({ error }) => error === undefined)).toEqual([false, false, true, true]);
      expect(trajectories[0]!.error).toMatch(reason);
      expect(warnings).toEqual([expect.stringMatching(/a conversation failed/)]);
      expect(engine.counts.created).toBe(engine.counts.disposed);
    }
  });

  it("is tried again where failed conversations are sampled again", async () => {
    let asked = 0;
    const fetch = async () => {
      if (asked++ === 0) throw new Error("no network");
      return new Response(small as never);
    };
    const { run } = makeFakeRollout({ reply: () => "seen", engine: see, n: 2, onFailure: "refill", images: { fetch } });
    const trajectories = await run([ask(["https://example.org/a.png"])]);
    expect(trajectories.map(({ error }) => error)).toEqual([undefined, undefined]);
    expect(trajectories.map(({ images }) => images!.length)).toEqual([1, 1]);
  });

  it("is refused at once without a projector, and if its sources are not allowed", async () => {
    const code = (rollout: ReturnType<typeof makeFakeRollout>, row: ReturnType<typeof ask>) =>
      rollout.run([row]).catch((error: { code: string }) => error.code);
    const blind = makeFakeRollout({ reply: () => "seen" });
    await expect(blind.run([ask([{ bytes: small }])])).rejects.toMatchObject({
      code: "config/no-projector",
      subject: "row 0",
      remedy: expect.stringContaining("model.mmproj"),
    });
    const seeing = makeFakeRollout({ reply: () => "seen", engine: see });
    expect(await code(seeing, ask(["https://example.org/a.png"]))).toBe("data/image-refused");
    expect(await code(seeing, ask(["a.png"]))).toBe("data/image-refused");
    expect(seeing.engine.counts.created).toBe(0);
  });

  it("keeps images whole if it is too long", async () => {
    const start = async (truncation: "left" | "right" | "middle", maxPromptLength: number) => {
      const { engine, run } = makeFakeRollout({ reply: () => "seen", engine: see, truncation, maxPromptLength });
      const [t] = await run([ask([{ bytes: large }], "before<image>after")]);
      const prompt = engine.detokenize(t!.tokenIds.subarray(0, t!.promptLength));
      return { prompt, length: t!.promptLength, images: describeImages(t!, engine.info.vocabSize) };
    };
    const tail = "after<|im_end|>\n<|im_start|>assistant\n";
    const length = (text: string) => makeFakeRollout({ reply: () => "", engine: see }).engine.tokenize(text).length;
    const whole = [expect.objectContaining({ length: 18, vectors: 16 })];
    expect(await start("left", length(tail) + 18)).toMatchObject({ images: whole });
    expect(await start("left", length(tail) + 17)).toEqual({ prompt: tail, length: length(tail), images: [] });
    const head = "<|im_start|>user\nbefore";
    expect(await start("right", length(head) + 18)).toMatchObject({ images: whole });
    expect(await start("right", length(head) + 9)).toEqual({ prompt: head, length: length(head), images: [] });
    const middle = await start("middle", 2 * length(head) + 8);
    expect(middle).toMatchObject({ prompt: expect.stringMatching(/^<\|im_start\|>user\nbefore/), images: [] });
  });
});

describe("a tool's images", () => {
  it("are seen before its text, as verl has it, or in an order of its own", async () => {
    const { engine, t, answer } = await play({ text: "zoomed", image: [{ bytes: small }] });
    expect(t.error).toBeUndefined();
    expect(answer).toEqual([
      { type: "image", image: expect.objectContaining({ hash: await hashOf(small) }) },
      { type: "text", text: "zoomed" },
    ]);
    expect(describeImages(t, engine.info.vocabSize)).toEqual([{ hash: await hashOf(small), length: 4, vectors: 2 }]);
    expect(t.responseMask[t.images![0]!.start]).toBe(0);
    expect(t.metrics).not.toHaveProperty("tool_media_omitted");
    expect(t.extraFields).not.toHaveProperty("tokenization");
    const parts = [
      { type: "text" as const, text: "left " },
      { type: "image" as const, image: { bytes: small } },
      { type: "text" as const, text: " right" },
    ];
    const ordered = await play({ content: parts });
    expect(ordered.answer).toMatchObject([parts[0], { type: "image" }, parts[2]]);
    const alone = await play({ image: [{ bytes: small }, { bytes: large }] });
    expect(alone.answer).toMatchObject([{ type: "image" }, { type: "image" }]);
  });

  it("are never cut: only text is cut", async () => {
    const { answer, t } = await play(
      { text: "x".repeat(1000), image: [{ bytes: large }] },
      { multiTurn: { maxToolResponseLength: 10 } },
    );
    expect(answer).toMatchObject([{ type: "image" }, { type: "text", text: "xxxxx(truncated)xxxxx" }]);
    expect(t.metrics.tool_truncated).toBe(1);
    const parts = [
      { type: "text" as const, text: "x".repeat(1000) },
      { type: "image" as const, image: { bytes: small } },
    ];
    const ordered = await play({ content: parts }, { multiTurn: { maxToolResponseLength: 10 } });
    expect(ordered.answer).toMatchObject([{ type: "image" }, { type: "text", text: "xxxxx(truncated)xxxxx" }]);
  });

  it("end the conversation if they do not fit, and are then not encoded", async () => {
    const room = makeFakeRollout({ reply: () => "" }).engine.tokenize(`${call}<|im_end|>`).length + 18;
    const { engine, t } = await play({ text: "", image: [{ bytes: large }] }, { responseLength: room });
    expect(t).toMatchObject({ finishReason: "length", numTurns: 2 });
    expect(t.images).toBeUndefined();
    expect(engine.images!.stats().encoded).toBe(0);
  });

  it("that cannot be read become an error for the model, and are counted", async () => {
    for (const [response, message] of [
      [{ image: [{ bytes: damaged }] }, /^error: look gave an image that cannot be seen \([\s\S]*cannot be decoded/],
      [{ image: [{ bytes: Uint8Array.of(1) }] }, /cannot be seen \(image of tool "look": is not an image/],
      [{ image: [{ url: "https://example.org/a.png" }] }, /may not be fetched/],
      [{ image: [7 as never], text: "x" }, /^error: look gave an image 0 that is none/],
      [{ content: [{ type: "video" } as never], text: "x" }, /^error: look gave a part 0 that is neither/],
    ] as const) {
      const { t, answer } = await play(response as ToolResponse);
      expect(answer).toMatch(message);
      expect(t.error).toBeUndefined();
      expect(t.metrics).toMatchObject({ tool_bad_image: 1, tool_errors: 1 });
      expect(t.timeline!.turns[1]!.failures).toEqual(["bad_image"]);
    }
    const limited = await play({ image: [{ bytes: large }] }, { images: { maxPixels: 100 } });
    expect(limited.answer).toMatch(/has too many pixels/);
  });

  it("may lie in files where the tool is the user's own, and only there", async () => {
    const file = join(folder, "tool.png");
    writeFileSync(file, small);
    const own = await play({ image: [{ path: file }] });
    expect(own.answer).toMatchObject([{ type: "image" }]);
    const foreign = makeTool({ image: [{ path: file }] });
    Object.defineProperty(foreign, "origin", { value: "mcp" });
    const other = await play({}, { tools: [foreign], images: { fetch: async () => new Response(small as never) } });
    expect(other.answer).toMatch(/may not be fetched/);
  });

  it("are named without a projector, as other media are", async () => {
    const { t, answer } = await play({ text: "see", image: [{ bytes: small }] }, { engine: {} });
    expect(answer).toBe("see\n[image omitted]");
    expect(t.metrics.tool_media_omitted).toBe(1);
    const content = [
      { type: "text" as const, text: "a" },
      { type: "image" as const, image: { bytes: small } },
    ];
    expect((await play({ content }, { engine: {} })).answer).toBe("a\n[image omitted]");
    const both = await play({ text: "see", image: [{ bytes: small }], audio: [1] });
    expect(both.answer).toMatchObject([{ type: "image" }, { type: "text", text: "see\n[audio omitted]" }]);
  });
});

describe("an interaction's images", () => {
  class Shows extends BaseInteraction {
    constructor(private readonly source: ImageSource) {
      super({}, "test");
    }
    override async startInteraction() {}
    override async generateResponse() {
      const content = [
        { type: "text" as const, text: "and this?" },
        { type: "image" as const, image: this.source },
      ];
      return { shouldTerminate: false, content, score: 0 };
    }
    override async finalizeInteraction() {}
  }
  const show = async (source: ImageSource, engine: FakeRolloutOptions["engine"] = see) => {
    const options = {
      reply: () => "seen",
      multiTurn: { maxAssistantTurns: 2 },
      engine,
      interactions: [new Shows(source)],
    };
    return (await makeFakeRollout(options).run())[0]!;
  };

  it("are seen in the user's turn", async () => {
    const t = await show({ bytes: small });
    expect(t.error).toBeUndefined();
    expect(t.messages[2]!.content).toMatchObject([{ text: "and this?" }, { type: "image" }]);
    expect(t.images).toHaveLength(1);
  });

  it("fail their conversation if they cannot be seen", async () => {
    expect((await show({ bytes: damaged })).error).toMatch(/interaction "test"[\s\S]*cannot be decoded/);
    expect((await show({ bytes: small }, {})).error).toMatch(/no projector/);
  });
});

it("a loop of the user's loads images, places them by their messages, and returns their tokens", async () => {
  const run = async (context: AgentLoopContext): Promise<AgentLoopOutput> => {
    const image = await context.loadImage({ bytes: small });
    const prompt = context.tokenizer.encodePrompt([{ role: "user", content: [{ type: "image", image }] }]);
    const turn = await context.sequence.generate(prompt, { maxTokens: 20 });
    return {
      tokenIds: [...prompt, ...turn.tokenIds],
      promptLength: prompt.length,
      responseMask: [...prompt.map(() => 0), ...turn.tokenIds.map(() => 1)],
      numTurns: 2,
      metrics: {},
    };
  };
  registerAgentLoop("sees", (context) => ({ run: () => run(context) }), { prompt: false });
  const play = (engine: FakeRolloutOptions["engine"]) =>
    makeFakeRollout({ reply: () => "seen", engine, defaultAgentLoop: "sees" }).run();
  const [t] = await play(see);
  expect(t!.images).toMatchObject([{ length: 4 }]);
  registerAgentLoop(
    "lies",
    (context) => ({
      run: async () => {
        const output = await run(context);
        const mask = [...(output.responseMask as number[])];
        mask[output.promptLength - 20] = 1;
        return { ...output, tokenIds: [...(output.tokenIds as number[]), 100_000], responseMask: [...mask, 1] };
      },
    }),
    { prompt: false },
  );
  const lies = makeFakeRollout({ reply: () => "seen", engine: see, defaultAgentLoop: "lies" });
  await expect(lies.run()).rejects.toMatchObject({
    code: "config/bad-agent-loop",
    subject: expect.stringMatching(/ tokenIds\[\d+\]$/),
    expected: expect.stringContaining("images"),
  });
});

it("a reward function sees the conversation's images", async () => {
  const seen: RewardInfo[] = [];
  const options = { reply: () => "seen", engine: see };
  const reward = (_source: string, text: string, _truth: unknown, info: RewardInfo) => {
    seen.push(info);
    return text === "seen" ? 1 : 0;
  };
  const { run } = makeFakeRollout({ ...options, reward });
  const [t] = await run([ask([{ bytes: small }])]);
  expect(t!.reward).toBe(1);
  expect(seen[0]!.images).toEqual([expect.objectContaining({ hash: await hashOf(small), bytes: small })]);
  expect((await makeFakeRollout({ ...options, reward }).run())[0]!.reward).toBe(1);
  expect(seen[1]).not.toHaveProperty("images");
});
