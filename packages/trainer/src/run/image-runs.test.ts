import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import { type LoadedImage, listImages } from "@cria/core";
import { FakeEngine, FakeValueEngine, fakeImageFile } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import { readDump } from "@cria/records";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { markObservations } from "../policy/observations.js";
import { Policy } from "../policy/policy.js";
import { advantages } from "../step/advantages.js";
import { rollOut } from "../step/roll-out.js";
import { runTrainingStep } from "../step/training-step.js";
import { readExamples } from "../task/read-examples.js";
import { defineTask } from "../task/task.js";
import { type FakeTrainingOptions, openFakeTraining } from "../testing/fake-training.js";
import { runValidation } from "../validation/run-validation.js";

const models = new TinyModels();
const folder = mkdtempSync(join(tmpdir(), "cria-image-runs-"));
afterAll(() => {
  models.cleanUp();
  rmSync(folder, { recursive: true, force: true });
});

/** An image that the scripted engine encodes as two vectors, with its marks. */
const file = fakeImageFile(32, 16);
const other = fakeImageFile(16, 16, 1);
const address = `data:image/png;base64,${Buffer.from(file).toString("base64")}`;
const ask = (...images: unknown[]) => ({
  prompt: [{ role: "user", content: `${"<image>".repeat(images.length)}what?` }],
  images,
});

const open = (options: Partial<FakeTrainingOptions> = {}) =>
  openFakeTraining(models, {
    prompts: ["a"],
    reply: () => "a cat",
    images: true,
    row: ask(address),
    reward: "return text.length;",
    ...options,
  });

async function step(options: Partial<FakeTrainingOptions> = {}) {
  const training = await open(options);
  const result = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
  return { training, ...result };
}

describe("a run over rows with images", () => {
  it("trains on conversations that show them, and measures and dumps them", async () => {
    const { training, trajectories, metrics } = await step({
      overrides: ["data.val_files={folder}/rows.jsonl", "actor_rollout_ref.actor.skip_zero_advantage=false"],
    });
    const { vocabSize } = training.policy.engine.info;
    expect(trajectories.map(({ images }) => images!.length)).toEqual([1, 1, 1, 1]);
    const [batch] = training.calls.train[0]!;
    for (const { tokenIds, lossMask } of batch) {
      const vectors = Array.from(tokenIds).flatMap((id, t) => (id >= vocabSize ? [lossMask[t]] : []));
      expect(vectors).toEqual([0, 0]);
    }
    // One file, which is encoded once for the group and all later uses.
    expect(metrics).toMatchObject({ "images/shown/mean": 1, "images/shown/max": 1, "images/encoded": 1 });
    expect(metrics["images/reused"]).toBeGreaterThan(3);
    const dump = join(training.folder, "validation.jsonl");
    await runValidation(training, { step: 1, file: dump });
    for await (const line of readDump(dump)) expect(line.images).toMatchObject([{ width: 32, height: 16, length: 4 }]);
    expect(readdirSync(join(training.folder, "images"))).toHaveLength(1);
    await training.dispose();
  });

  it("reads the column that data.image_key names, and paths from the rows' folder", async () => {
    const training = await open({
      files: { "a.png": file as never },
      row: { ...ask(), prompt: ask("a.png").prompt, pictures: ["a.png"] },
      overrides: ["data.image_key=pictures"],
    });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    expect(trajectories[0]!.error).toBeUndefined();
    expect(trajectories[0]!.images).toHaveLength(1);
    await training.dispose();
  });

  it("keeps to the limits of data.image_max_pixels and data.image_max_bytes", async () => {
    for (const [key, most] of [
      ["image_max_pixels", "511"],
      ["image_max_bytes", "33"],
    ] as const)
      await expect(step({ overrides: [`data.${key}=${most}`] })).rejects.toMatchObject({
        code: "rollout/all-failed",
        received: expect.stringMatching(new RegExp(`\\b${most}\\b`)),
      });
  });

  it("fetches addresses where data.fetch_images is on, and else refuses them before the model is loaded", async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.end(file);
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png`;
    await expect(open({ row: ask(url) })).rejects.toMatchObject({
      code: "data/image-refused",
      subject: expect.stringContaining("line 1"),
      remedy: expect.stringContaining("data.fetch_images"),
    });
    expect(asked).toBe(0);
    const { trajectories, training } = await step({ row: ask(url), overrides: ["data.fetch_images=true"] });
    expect(trajectories[0]!.images).toHaveLength(1);
    // It is fetched once for all samples.
    expect(asked).toBe(1);
    await training.dispose();
    server.close();
  });

  it("is refused at once where the model has no projector", async () => {
    await expect(open({ images: undefined })).rejects.toMatchObject({
      code: "config/no-projector",
      subject: expect.stringMatching(/rows\.jsonl, line 1$/),
      remedy: expect.stringContaining("model.mmproj"),
    });
  });

  it("leaves out rows whose images are too many tokens", async () => {
    const large = `data:image/png;base64,${Buffer.from(fakeImageFile(640, 640)).toString("base64")}`;
    const overrides = ["data.filter_overlong_prompts=true", "data.max_prompt_length=1000", `data.cache_dir=${folder}`];
    await expect(open({ row: ask(large), overrides })).rejects.toMatchObject({
      code: "data/empty",
      received: expect.stringMatching(/16\d\d tokens/),
    });
    expect((await open({ row: ask(address), overrides })).trainRows).toHaveLength(1);
  });
});

describe("a task", () => {
  const makePolicy = (reply = "seen") => {
    const engine = new FakeEngine({ reply: () => reply, images: true });
    return new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 1 });
  };

  it("has rows with images, or makes parts of them; its reward sees the images", async () => {
    const seen: LoadedImage[][] = [];
    const reward = ({ images }: { images: readonly LoadedImage[] }) => seen.push([...images]);
    const rows = [{ question: "<image>left, <image>right?", images: [file, { bytes: other }] }];
    const policy = makePolicy();
    const asked = defineTask({ rows, reward });
    const [t] = (await rollOut(policy, await asked.open(policy), await asked.load(), { n: 1 })).trajectories;
    expect(t!.messages[0]!.content).toMatchObject([
      { type: "image" },
      { text: "left, " },
      { type: "image" },
      { text: "right?" },
    ]);
    expect(seen[0]!.map(({ bytes }) => bytes)).toEqual([file, other]);
    const made = defineTask({
      rows: [{ picture: file }],
      prompt: ({ picture }) => [
        {
          role: "user",
          content: [
            { type: "text", text: "this: " },
            { type: "image", image: picture, mediaType: "image/png" },
          ],
        },
      ],
      reward,
    });
    const [m] = (await rollOut(policy, await made.open(policy), await made.load(), { n: 1 })).trajectories;
    expect(m!.images).toHaveLength(1);
    await Promise.all([asked.dispose(), made.dispose()]);
  });

  it("has paths from the working directory, and tools that show images", async () => {
    const path = join(folder, "b.png");
    writeFileSync(path, other);
    const look = tool({
      name: "look",
      description: "Looks.",
      inputSchema: z.object({}),
      execute: () => ({ image: [{ path }] }),
    });
    const engine = new FakeEngine({
      reply: ({ turn }) => (turn === 0 ? '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>' : "done"),
      images: true,
    });
    const policy = new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 1 });
    const task = defineTask({
      rows: [{ prompt: [{ role: "user", content: [{ type: "image", image: path }] }] }],
      tools: [look],
      reward: () => 1,
    });
    const [t] = (await rollOut(policy, await task.open(policy), await task.load(), { n: 1 })).trajectories;
    expect(t!.error).toBeUndefined();
    expect(t!.images).toHaveLength(2);
    await task.dispose();
  });

  it("has observations beside images: the text of a tool's answer alone", async () => {
    const path = join(folder, "c.png");
    writeFileSync(path, other);
    const look = tool({
      name: "look",
      description: "Looks.",
      inputSchema: z.object({}),
      execute: () => ({ text: "seen", image: [{ path }] }),
    });
    const reply = ({ turn }: { turn: number }) =>
      turn === 0 ? '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>' : "done";
    const engine = new FakeEngine({ reply, images: true });
    const policy = new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 1 });
    const task = defineTask({ rows: [{ question: "What?" }], tools: [look], reward: () => 1 });
    const groups = await rollOut(policy, await task.open(policy), await task.load(), { n: 2 });
    for (const trajectory of groups.trajectories) {
      expect(trajectory.images).toHaveLength(1);
      const marks = markObservations(trajectory, (ids) => engine.detokenize(ids));
      const observed = trajectory.tokenIds.filter((_, t) => marks[t]);
      expect(engine.detokenize(observed)).toBe("seen");
    }
    const batch = groups.toBatch(advantages.grpo(groups));
    const [result] = await policy.train(batch, losses.ppo({ observations: 0.1 }), { learningRate: 1e-3 });
    expect(result!.metrics.observation_loss).toBeGreaterThan(0);
    await task.dispose();
  });

  it("is refused by a policy without a projector", async () => {
    const engine = new FakeEngine({ reply: () => "x" });
    const policy = new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 1 });
    const task = defineTask({ rows: [{ question: "<image>?", images: file }], reward: () => 1 });
    const rows = await task.load();
    await expect(rollOut(policy, await task.open(policy), rows, { n: 1 })).rejects.toMatchObject({
      code: "config/no-projector",
      subject: "rows[0]",
    });
    await task.dispose();
  });

  it("a policy answers messages with images", async () => {
    const policy = makePolicy("a cat");
    const content = [{ type: "image" as const, image: { bytes: file } }];
    expect(await policy.generate([{ role: "user", content }])).toBe("a cat");
  });
});

describe("engines with images of their own", () => {
  it("get the ids that images have there", async () => {
    const engine = new FakeEngine({ reply: () => "x", images: true });
    const reference = new FakeEngine({ reply: () => "x", images: true });
    const policy = new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference, seed: 1 });
    const show = (bytes: Uint8Array) => ({ type: "image" as const, image: { bytes } });
    const task = defineTask({
      rows: [
        { prompt: [{ role: "user", content: [show(other), show(file)] }] },
        { prompt: [{ role: "user", content: [show(file)] }] },
      ],
      reward: () => 1,
    });
    const { trajectories } = await rollOut(policy, await task.open(policy), await task.load(), { n: 1 });
    const [, second] = trajectories;
    const sequence = { tokenIds: second!.tokenIds, from: second!.promptLength };
    const [scored] = await policy.scoreReference([sequence]);
    const [own] = await engine.score([sequence]);
    expect([...scored!]).toEqual([...own!.logprobs]);
    // The reference never saw the policy's first image, so that its image ids differ from the policy's.
    expect(reference.images!.find(reference.info.vocabSize)!.placed.image.bytes).toEqual(file);
    await task.dispose();
  });

  it("so does a critic", async () => {
    const critic = Object.assign(new FakeValueEngine(), {
      images: new FakeEngine({ reply: () => "", images: true }).images!,
    });
    const training = await open({ overrides: ["algorithm.adv_estimator=gae"], row: ask(address) });
    const given: number[][] = [];
    training.critic!.engine = Object.assign(critic, {
      values: async (sequences: readonly { tokenIds: ArrayLike<number> }[]) => {
        for (const { tokenIds } of sequences) given.push(Array.from(tokenIds));
        return sequences.map(({ tokenIds }) => new Float32Array(tokenIds.length));
      },
    });
    // This image was shown to the policy, but not to the critic.
    const { engine } = training.policy;
    const image = listImages(training.trainRows[0]!.prompt[0]!.content)[0]!;
    expect(image).toBeDefined();
    const held = engine.images!.place({ hash: "ab", width: 64, height: 64, mimeType: "image/png", bytes: other });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    const { vocabSize } = engine.info;
    const vectors = (ids: ArrayLike<number>) => Array.from(ids).filter((id) => id >= vocabSize);
    expect(vectors(trajectories[0]!.tokenIds)).toEqual([vocabSize + 16, vocabSize + 17]);
    expect(vectors(given[0]!)).toEqual([vocabSize, vocabSize + 1]);
    expect(held.tokenIds).toHaveLength(18);
    await training.dispose();
  });
});

describe("supervised training", () => {
  it("reads conversations with images, from rows and from dumps", async () => {
    const engine = new FakeEngine({ reply: () => "", images: true });
    const tokenizer = DeltaTokenizer.forModel(engine);
    const rows = join(folder, "sft.jsonl");
    writeFileSync(join(folder, "c.png"), file);
    const messages = [...ask("c.png").prompt, { role: "assistant", content: "a cat" }];
    writeFileSync(rows, `${JSON.stringify({ messages, images: ["c.png"] })}\n`);
    const options = { messagesKey: "messages", toolsKey: "tools", maxLength: 500 };
    const { examples } = await readExamples([rows], tokenizer, options);
    const { vocabSize } = engine.info;
    expect(examples[0]!.images).toHaveLength(1);
    expect(Array.from(examples[0]!.tokenIds).filter((id) => id >= vocabSize)).toHaveLength(2);
    expect(examples[0]!.tokenIds.some((id, t) => id >= vocabSize && examples[0]!.lossMask[t] === 1)).toBe(false);

    const training = await open();
    const dump = join(training.folder, "rollouts", "1.jsonl");
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    const { dumpTrajectories, saveDump } = await import("../validation/dump-trajectories.js");
    const lines = dumpTrajectories(training.policy.engine, training.environment, trajectories, {
      step: 1,
      rows: training.trainRows,
    });
    await saveDump(dump, lines, []);
    expect(existsSync(join(training.folder, "rollouts", "images"))).toBe(true);
    expect(readFileSync(dump, "utf8")).toContain('"mime_type":"image/png"');
    const read = await readExamples([dump], tokenizer, options);
    expect(read.examples).toHaveLength(trajectories.length);
    expect(read.examples[0]!.images).toHaveLength(1);
    await training.dispose();
  });
});
