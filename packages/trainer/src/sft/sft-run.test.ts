import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import type { LiveState } from "@cria/records";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { checkConfig } from "../config/check-config.js";
import { type SftConfig, sftConfigSchema } from "../config/sft-config.js";
import type { RunEvent } from "../events.js";
import { readLiveState } from "../live/live-state.js";
import { sftMetrics } from "../metrics/sections/sft.js";
import { runTraining } from "../run/run-training.js";
import { TrainingInterrupted } from "../run/steps.js";
import { readExamples, type SftExample } from "../task/read-examples.js";
import { dropTimes } from "../testing/drop-times.js";
import { openTinyTraining } from "../testing/tiny-training.js";
import type { TrackedStep, Tracker } from "../trackers/tracker.js";
import { BucketedBatches } from "./bucketed-batches.js";
import { LossAverage } from "./loss-average.js";
import { type RunSftOptions, runSft } from "./run-sft.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const talk = (question: string, answer: string) => ({
  messages: [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ],
});

function writeTalks(name: string, talks: object[]): string {
  const file = join(models.folder, name);
  writeFileSync(file, talks.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

// Short answers and long ones: batches hold one kind or the other.
const talks = Array.from({ length: 20 }, (_, i) => talk(`${i}?`, i % 2 ? "yes" : "no ".repeat(6 + i)));
const trainFile = writeTalks("train.jsonl", talks);
const valFile = writeTalks("val.jsonl", [talk("30?", "no no"), talk("31?", "yes"), talk("32?", "")]);
let modelPath = "";
beforeAll(async () => {
  modelPath = await models.write();
});

interface More {
  model?: object;
  optim?: object;
  data?: object;
  trainer?: object;
}

function configure(name: string, more: More = {}): SftConfig {
  return checkConfig(
    sftConfigSchema,
    {
      model: { path: modelPath, lora_rank: 4, ...more.model },
      data: { train_files: trainFile, val_files: valFile, train_batch_size: 2, ...more.data },
      optim: { lr: 1e-2, ...more.optim },
      trainer: {
        default_local_dir: models.folder,
        experiment_name: name,
        total_training_steps: 12,
        test_freq: 5,
        threads: 1,
        ...more.trainer,
      },
    },
    "test",
  );
}

const run = (config: SftConfig, options: RunSftOptions = {}) => runSft(config, models.folder, options);

const pathOf = (name: string) => join(models.folder, "sft", name);
const readMetrics = (name: string) =>
  readFileSync(join(pathOf(name), "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);

function readRun(name: string, weights: string) {
  const bytes = readFileSync(join(pathOf(name), weights));
  return { metrics: readMetrics(name).map(dropTimes), sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Aborts when the tracker receives a step, so that nothing after it runs. */
function abortAfter(step: number): RunSftOptions {
  const controller = new AbortController();
  const tracker: Tracker = {
    name: "aborting",
    start: async () => null,
    log: async () => undefined,
    finish: async () => undefined,
  };
  const log = (steps: readonly TrackedStep[]) => {
    if (steps.some((logged) => logged.step >= step)) controller.abort(new Error("enough"));
  };
  return { signal: controller.signal, trackers: [{ ...tracker, log: async (steps) => log(steps) }] };
}

describe("a run of cria sft", () => {
  it("writes each batch's own mean loss, for conversations of any length; resumed, the same bits", async () => {
    for (const [kind, rank] of [
      ["adapter.gguf", 4],
      ["model.gguf", 0],
    ] as const) {
      const model = { lora_rank: rank };
      const { loss } = await run(configure(`whole-${rank}`, { model }));
      const whole = readRun(`whole-${rank}`, kind);
      expect(whole.metrics).toHaveLength(13);
      // Stopped twice, once where no checkpoint was due.
      for (const stop of [3, 7]) {
        const error = await run(configure(`stopped-${rank}`, { model }), abortAfter(stop)).catch((e: unknown) => e);
        expect(error).toBeInstanceOf(TrainingInterrupted);
        const { step, checkpoint } = (error as TrainingInterrupted).training;
        expect(step).toBeGreaterThanOrEqual(stop);
        expect(step).toBeLessThan(12);
        expect(existsSync(join(checkpoint!, "actor", "state.bin"))).toBe(true);
      }
      const said: string[] = [];
      const resumed = await run(configure(`stopped-${rank}`, { model }), {
        report: (event) => event.type === "notice" && said.push(event.text),
      });
      expect(resumed.loss).toBe(loss);
      expect(said.join()).toMatch(/resuming after step/);
      expect(readRun(`stopped-${rank}`, kind)).toEqual(whole);
    }
  });

  it("warns of targets that the model does not have", async () => {
    const model = { target_modules: ["q_proj", "attn_qkv"] };
    const warnings: string[] = [];
    const trainer = { total_training_steps: 1 };
    await run(configure("targets", { model, trainer }), {
      report: (event) => event.type === "warning" && warnings.push(event.text),
    });
    expect(warnings).toEqual([expect.stringContaining("attn_qkv")]);
    expect(warnings[0]).toMatch(/^model\.target_modules: /);
  });

  it("measures the value of an independent sum over the tokens: of held-out conversations, and of each batch alone", async () => {
    // Weights that stay as they are.
    const trainer = { total_training_steps: 8 };
    const { output } = await run(configure("measured", { trainer, optim: { lr: 1e-12 } }));
    expect(output).toBe(join(pathOf("measured"), "adapter.gguf"));
    const model = await loadModel({
      path: modelPath,
      trainable: "lora",
      contextSize: 64,
      threads: 1,
      lora: { rank: 4 },
    });
    const tokenizer = DeltaTokenizer.forModel(model);
    const read = async (file: string) =>
      (await readExamples([file], tokenizer, { messagesKey: "messages", toolsKey: "tools", maxLength: 500 })).examples;
    const measure = async (examples: readonly SftExample[]) => {
      let sum = 0;
      let tokens = 0;
      for (const { tokenIds, lossMask } of examples) {
        const [scores] = await model.score([{ tokenIds }]);
        for (const [t, bit] of lossMask.entries()) {
          if (!bit) continue;
          sum -= scores!.logprobs[t]!;
          tokens++;
        }
      }
      return { loss: sum / tokens, tokens };
    };
    const [before, ...steps] = readMetrics("measured");
    const heldOut = await measure(await read(valFile));
    expect(before!["val/loss_tokens"]).toBe(heldOut.tokens);
    expect(before!["val/loss"]).toBeCloseTo(heldOut.loss, 5);
    const batches = new BucketedBatches(await read(trainFile), 2, 0, 1e6);
    for (const step of steps) {
      const batch = await measure(batches.next());
      expect(step["train/loss_tokens"]).toBe(batch.tokens);
      expect(step["train/loss"]).toBeCloseTo(batch.loss, 5);
    }
    await model.dispose();
    // The minimized loss is different: there, a batch of long conversations weighs more.
    const lengths = steps.map((step) => step["train/loss_tokens"]!);
    expect(Math.max(...lengths) / Math.min(...lengths)).toBeGreaterThan(4);
  });

  it("repeats an interrupted validation", async () => {
    const more = { trainer: { test_freq: 1, val_before_train: false, total_training_steps: 3 } };
    await run(configure("validated", more));
    const controller = new AbortController();
    const { signal } = controller;
    const config = configure("unvalidated", more);
    // Held-out conversations are scored in two batches: it ends between them.
    const report = (event: RunEvent) =>
      event.type === "progress" && event.work === "validate" && controller.abort(new Error("enough"));
    const error = await run(config, { signal, report }).catch((e: unknown) => e);
    expect((error as TrainingInterrupted).training).toMatchObject({ step: 1, lost: "the validation after step 1" });
    expect(existsSync(join(pathOf("unvalidated"), "metrics.jsonl"))).toBe(false);
    await run(config);
    expect(readRun("unvalidated", "adapter.gguf")).toEqual(readRun("validated", "adapter.gguf"));
  });

  it("refuses a checkpoint of other conversations, of another adapter, and of cria train", async () => {
    const trainer = { total_training_steps: 1 };
    await run(configure("first", { trainer }));
    const more = { total_training_steps: 2 };
    const other = writeTalks("other.jsonl", [...talks.slice(1), talk("new?", "yes")]);
    await expect(run(configure("first", { trainer: more, data: { train_files: other } }))).rejects.toMatchObject({
      code: "data/other-loader",
      subject: expect.stringMatching(/: tokens$/),
      remedy: expect.stringContaining("resume_mode=disable"),
    });
    await expect(run(configure("first", { trainer: more, model: { lora_rank: 2 } }))).rejects.toMatchObject({
      code: "config/changed-since-checkpoint",
      subject: expect.stringContaining("model.lora_rank"),
    });
    const opened = await openTinyTraining(models, { trainer: { total_training_steps: 1, val_before_train: false } });
    const { path } = await runTraining(opened, {
      configFolder: opened.folder,
      trackers: [],
    });
    const resume = { resume_mode: "resume_path", resume_from_path: path };
    await expect(run(configure("second", { trainer: { ...more, ...resume } }))).rejects.toMatchObject({
      code: "config/other-command",
      expected: expect.stringContaining("cria sft"),
      received: expect.stringContaining("cria train"),
    });
  });

  it("gives trackers every step, with its validation", async () => {
    const steps: TrackedStep[] = [];
    const tracker: Tracker = {
      name: "list",
      start: async () => null,
      log: async (logged) => void steps.push(...logged),
      finish: async (status) => void expect(status).toBe("finished"),
    };
    await run(configure("tracked", { trainer: { total_training_steps: 2 } }), { trackers: [tracker] });
    expect(steps.map(({ step }) => step)).toEqual([0, 1, 2]);
    expect(Object.keys(steps[2]!.metrics)).toEqual(expect.arrayContaining(["train/loss", "train/lr", "val/loss"]));
    // The table has a row for each, and for no other of this command.
    const documented = sftMetrics.metrics.map(({ name }) => name);
    const written = Object.keys(steps[2]!.metrics).filter((name) => /^(train|val)\//.test(name));
    expect(written.sort()).toEqual(documented.sort());
  });
});

it("reports its state in its folder while it runs", async () => {
  let live: LiveState | null = null;
  const tracker: Tracker = {
    name: "late",
    start: async () => null,
    log: async () => undefined,
    // The run is over when its trackers are; the file is written once a second.
    finish: () =>
      vi.waitFor(async () => {
        live = await readLiveState(pathOf("lived"));
        expect(live?.step).toBe(2);
      }, 5000),
  };
  await run(configure("lived", { trainer: { total_training_steps: 2 } }), { trackers: [tracker] });
  expect(live).toMatchObject({ phase: "validation", total: 2, eta: 0, conversations: { total: 0 } });
  expect(live!.seconds.training).toBeGreaterThan(0);
  expect(await readLiveState(pathOf("lived"))).toBeNull();
});

describe("the average of the loss", () => {
  it("has no bias to its first value, and goes on where it was saved", () => {
    const average = new LossAverage();
    average.add(4);
    expect(average.value).toBeCloseTo(4, 12);
    average.add(2);
    expect(average.value).toBeCloseTo((0.98 * 4 + 2) / 1.98, 12);
    const other = new LossAverage();
    other.restore(JSON.parse(JSON.stringify(average.save())));
    for (const each of [average, other]) each.add(1);
    expect(other.value).toBe(average.value);
  });
});
