import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import { drawPicture, makeTinyProjector, TinyModels, visionPairs } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { tool } from "@cria/tools";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { openReplay } from "../replay/open-replay.js";
import { defineTask } from "../task/task.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";

/** A real engine and a projector with random weights: the same images are trained on, dumped and held again. */
const models = new TinyModels();
afterAll(() => models.cleanUp());

let model: string;
let mmproj: string;
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
  mmproj = join(models.folder, "mmproj.gguf");
  await makeTinyProjector(mmproj, { projection: 32 });
});

const rows = [
  { question: "<image>?", images: drawPicture(32, 32) },
  { question: "a<image><image>", images: [drawPicture(32, 20), drawPicture(32, 32)] },
];
/** A random model calls no tool; the test needs only its text after an image. */
const look = tool({ name: "look", description: "Looks.", inputSchema: z.object({}), execute: () => "nothing" });
const task = defineTask({
  rows,
  tools: [look],
  reward: ({ text, images }) => ({ score: text.length % 3, seen: images.length }),
  maxPromptLength: 300,
  maxResponseLength: 8,
});

const options = (folder: string, more: TrainOptions = {}): TrainOptions => ({
  model,
  mmproj,
  task,
  folder: join(models.folder, folder),
  lora: { rank: 4, alpha: 8 },
  steps: 2,
  batchSize: 2,
  n: 4,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  config: { actor_rollout_ref: { rollout: { max_num_seqs: 8 } } },
  ...more,
});

const hash = (file: string | null) => createHash("sha256").update(readFileSync(file!)).digest("hex");

async function readLines(file: string): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(file)) lines.push(line);
  return lines;
}

it("an adapter is trained on images, to the same bits again, and its conversations are held again", async () => {
  const run = await train(options("first"));
  const again = await train(options("second"));
  expect(hash(run.adapter)).toBe(hash(again.adapter));
  expect(run.metrics["images/shown/mean"]).toBe(1.5);
  // There are two files; the second step reuses their vectors.
  expect(run.metrics["images/encoded"]).toBe(0);
  expect(run.metrics["actor/grad_norm"]).toBeGreaterThan(0);
  expect(run.metrics["training/rollout_probs_diff_max"]).toBe(0);
  expect(readdirSync(join(run.folder, "rollouts", "images"))).toHaveLength(2);
  const replay = await openReplay(run.folder, { train: options("first") });
  try {
    for (const step of [2, 1]) {
      const lines = await readLines(join(run.folder, "rollouts", `${step}.jsonl`));
      const results = await replay.replay(lines);
      expect(results.map(({ difference }) => difference)).toEqual(lines.map(() => null));
      expect(lines.every(({ token_ids }) => token_ids.includes(-1))).toBe(true);
    }
    const [line] = await readLines(join(run.folder, "rollouts", "2.jsonl"));
    const { logprobs } = await replay.scoreNow(line!);
    expect(logprobs.filter((x) => x !== 0)).toHaveLength(line!.response_mask.filter((bit) => bit === 1).length);
    const [likeliest] = await replay.alternatives(line!, line!.prompt_length, { count: 1 });
    expect(likeliest!.logprob).toBeLessThan(0);
  } finally {
    await replay.close();
  }
  writeFileSync(mmproj, Buffer.concat([readFileSync(mmproj), Buffer.of(0)]));
  await expect(openReplay(run.folder, { train: options("first") })).rejects.toMatchObject({
    code: "replay/other-projector",
  });
  await makeTinyProjector(mmproj, { projection: 32 });
});

it("versions of all weights see them, and train the same bits again", async () => {
  const ahead = (folder: string) => options(folder, { lora: null, lag: 1, steps: 3 });
  const run = await train(ahead("ahead"));
  expect(hash((await train(ahead("ahead-again"))).model)).toBe(hash(run.model));
  expect(run.metrics).toMatchObject({ "images/shown/mean": 1.5, "training/off_policy/trajectory_staleness/mean": 1 });
  const replay = await openReplay(run.folder, { train: ahead("ahead") });
  try {
    const lines = await readLines(join(run.folder, "rollouts", "3.jsonl"));
    expect((await replay.replay(lines)).map(({ difference }) => difference)).toEqual(lines.map(() => null));
  } finally {
    await replay.close();
  }
});

it("all weights, a reference and a critic see them too, each in an engine of its own", async () => {
  const { metrics } = await train(
    options("all", { lora: null, advantages: "gae", loss: losses.ppo({ kl: { coefficient: 0.01 } }), steps: 1 }),
  );
  // Before training, policy and reference are equal: their logprobs agree only if the images do.
  expect(Math.abs(metrics["actor/kl_loss"]!)).toBeLessThan(1e-9);
  expect(metrics["critic/vf_loss"]).toBeGreaterThan(0);
  expect(metrics["critic/grad_norm"]).toBeGreaterThan(0);
});

it.each(visionPairs.filter(({ name }) => name === "Qwen2.5-VL" || name === "Qwen3-VL"))(
  "$name is trained through its positions of rows and columns",
  async (pair) => {
    const projector = join(models.folder, `${pair.name}.mmproj.gguf`);
    await makeTinyProjector(projector, pair.projector);
    const { metrics } = await train(
      options(pair.name, { model: await models.write(pair.model), mmproj: projector, steps: 1 }),
    );
    expect(metrics["images/shown/mean"]).toBe(1.5);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    expect(metrics["training/rollout_probs_diff_max"]).toBe(0);
  },
  60_000,
);
