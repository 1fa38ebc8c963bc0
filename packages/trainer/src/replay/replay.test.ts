import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DumpLine, readDump } from "@cria/records";
import { tool } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import type { RunEvent } from "../events.js";
import { runTraining } from "../run/run-training.js";
import { train } from "../run/train.js";
import type { TrainOptions } from "../run/train-options.js";
import { openTraining } from "../run/training.js";
import { defineTask } from "../task/task.js";
import { openReplay } from "./open-replay.js";
import type { Replay } from "./replay.js";

const STEPS = 6;
const demo = fileURLToPath(new URL("../../../../examples/calculator/config.yaml", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cria-replay-"));
const path = join(folder, "calculator", "grpo-lora");
const events: RunEvent[] = [];
let replay: Replay;

/** Trains a run like the demo's, and stops it after step `stopAfter`. */
async function trainUntil(stopAfter: number, more: readonly string[] = []): Promise<void> {
  const overrides = [
    "data.train_batch_size=4",
    "data.val_max_samples=6",
    "actor_rollout_ref.rollout.n=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "actor_rollout_ref.actor.optim.lr=5e-3",
    "actor_rollout_ref.rollout.val_kwargs.do_sample=true",
    `trainer.total_training_steps=${STEPS}`,
    "trainer.save_freq=2",
    "trainer.test_freq=3",
    "trainer.threads=1",
    `trainer.default_local_dir=${folder}`,
    ...more,
  ];
  const { values: config, folder: configFolder } = loadConfig(trainConfigSchema, demo, overrides);
  const training = await openTraining(config, configFolder);
  let done = 0;
  const isStopping = () => done >= stopAfter;
  const afterStep = async () => void done++;
  await runTraining(training, { configFolder, isStopping, afterStep });
  await training.dispose();
}

async function readLines(name: string): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(path, name))) lines.push(line);
  return lines;
}

/** The run with a JSON file of it changed. */
// biome-ignore lint/suspicious/noExplicitAny: what a file holds is what the test knows.
function copyRun(name: string, file: string, change: (json: any) => void): string {
  const copy = join(folder, name);
  cpSync(path, copy, { recursive: true });
  const json = JSON.parse(readFileSync(join(copy, file), "utf8"));
  change(json);
  writeFileSync(join(copy, file), JSON.stringify(json));
  return copy;
}

const takeNotices = () => events.splice(0).flatMap((event) => (event.type === "notice" ? event.text : []));

beforeAll(async () => {
  await trainUntil(3);
  await trainUntil(STEPS);
  replay = await openReplay(path, { report: (event) => events.push(event) });
});
afterAll(async () => {
  await replay?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("replay", () => {
  it("of 50 conversations is equal bit for bit, from checkpoints and the start, before and after a resume", async () => {
    let count = 0;
    // Backwards, so that each step needs its checkpoint again.
    for (const step of [6, 5, 4, 2, 1]) {
      const lines = (await readLines(`rollouts/${step}.jsonl`)).slice(0, 10);
      const results = await replay.replay(lines);
      expect(results.map(({ difference }) => difference)).toEqual(lines.map(() => null));
      expect(results.every(({ equal, sampled }) => equal && sampled > 0)).toBe(true);
      count += results.length;
    }
    expect(count).toBe(50);
    expect(takeNotices()).toEqual([
      "training step 5 again, from the weights after step 4",
      // Step 3 was saved when the run was stopped; 4 and 2 need no training.
      "training step 1 again, from the start",
    ]);
    expect(replay.trainedSteps).toBe(2);
  });

  it("of a run with a lag is equal too: by the version that sampled the step, and through steps trained again", async () => {
    const v1 = "trainer.v1={trainer_mode: colocate_async, colocate_async: {num_warmup_batches: 2}}";
    await trainUntil(5, [v1, "trainer.experiment_name=ahead", "trainer.save_freq=3", "trainer.test_freq=-1"]);
    const ahead = await openReplay(join(folder, "calculator", "ahead"));
    try {
      // Steps 5 and 4 were sampled after 2 and 1 updates, step 3 by the policy of the start.
      for (const step of [5, 3, 4]) {
        const lines = await readLines(`../ahead/rollouts/${step}.jsonl`);
        expect((await ahead.replay(lines)).map(({ difference }) => difference)).toEqual(lines.map(() => null));
      }
      expect(ahead.trainedSteps).toBe(3);
    } finally {
      await ahead.close();
    }
  });

  it("of a validation is equal too, which was made after its step", async () => {
    const lines = await readLines("validation/3.jsonl");
    expect(lines).toHaveLength(6);
    expect((await replay.replay(lines, { validation: true })).every(({ equal }) => equal)).toBe(true);
    // Greedy conversations would be equal with many weights: these were sampled.
    expect(lines[0]!.sampling!.temperature).toBe(1);
  });

  it("with the weights of another step is not equal, and names the first difference", async () => {
    const lines = (await readLines("rollouts/6.jsonl")).map((line) => ({ ...line, step: 1 }));
    const other = (await replay.replay(lines)).filter(({ equal }) => !equal);
    expect(other.length).toBeGreaterThan(0);
    const { token, recorded } = other[0]!.difference!;
    const line = lines.find(({ uid, sample }) => uid === other[0]!.uid && sample === other[0]!.sample)!;
    expect(recorded).toEqual({ id: line.token_ids[token], logprob: line.rollout_logprobs[token] });
    expect(line.response_mask[token]).toBe(1);
  });

  it("sees a single bit of a logprob", async () => {
    const [line] = await readLines("rollouts/2.jsonl");
    const t = line!.response_mask.indexOf(1);
    const bits = new Int32Array(Float32Array.of(line!.rollout_logprobs[t]!).buffer);
    bits[0]! += 1;
    const changed = line!.rollout_logprobs.with(t, new Float32Array(bits.buffer)[0]!);
    const [result] = await replay.replay([{ ...line!, rollout_logprobs: changed }]);
    expect(result).toMatchObject({ equal: false, difference: { token: t } });
  });

  it("finds a single bit of a logprob", async () => {
    const old = (line: DumpLine): DumpLine => ({
      ...line,
      sampling: undefined,
      // Rounded from the float itself: its nine digits in the dump may round differently.
      rollout_logprobs: line.rollout_logprobs.map((x) => Number(Math.fround(x).toFixed(6))),
    });
    const lines = (await readLines("rollouts/1.jsonl")).map(old);
    expect((await replay.replay(lines)).every(({ equal }) => equal)).toBe(true);
    const validated = (await readLines("validation/6.jsonl")).map(old);
    expect((await replay.replay(validated, { validation: true })).every(({ equal }) => equal)).toBe(true);
  });

  it("until a token compares only the tokens before it", async () => {
    const [line] = await readLines("rollouts/2.jsonl");
    const { start, end } = line!.turns[0]!;
    const until = start + Math.ceil((end - start) / 2);
    const [result] = await replay.replay([line!], { until });
    expect(result).toMatchObject({ equal: true, tokens: until, sampled: until - start });
  });
});

/** A conversation that called its calculator, and the index of the first digit in the call's arguments. */
async function findCall(): Promise<{ line: DumpLine; token: number }> {
  for (const line of await readLines("rollouts/2.jsonl")) {
    const [turn, answer] = line.turns;
    if (!turn?.tool_calls || answer?.failures?.[0] !== null) continue;
    for (let t = turn.start; t < turn.end; t++)
      if (/^\d$/.test(replay.engine.detokenize([line.token_ids[t]!]))) return { line, token: t };
  }
  throw new Error("no conversation of the step calls its tool");
}

describe("a changed token", () => {
  it("goes on with tools that really run, and is judged", async () => {
    const { line, token } = await findCall();
    const digit = replay.engine.detokenize([line.token_ids[token]!]) === "7" ? "8" : "7";
    const [replacement] = replay.tokenize(digit);
    const said: [string, string][] = [];
    const options = { replacement, liveTools: true, onText: (role: string, text: string) => said.push([role, text]) };
    const { line: changed } = await replay.fork(line, token, options);
    expect(changed.token_ids.slice(0, token)).toEqual(line.token_ids.slice(0, token));
    expect(changed.rollout_logprobs.slice(0, token)).toEqual(line.rollout_logprobs.slice(0, token));
    expect(changed.token_ids[token]).toBe(replacement);
    expect(changed.rollout_logprobs[token]).toBeLessThan(0);
    expect(changed.reward).toEqual(expect.any(Number));
    expect(said[0]).toEqual(["assistant", digit]);
    // The reported texts are those in the conversation.
    const spoken = said.filter(([role]) => role === "assistant").map(([, text]) => text);
    const text = changed.messages.slice(changed.prompt_messages).map(({ content }) => content);
    expect(text.filter((_, i) => changed.messages[changed.prompt_messages + i]!.role === "assistant").join("")).toMatch(
      spoken.join("").trim().slice(0, 5),
    );
    const again = await replay.fork(line, token, { replacement, liveTools: true });
    expect(again.line).toEqual({ ...changed, metrics: again.line.metrics });
    const other = await replay.fork(line, token, { replacement, liveTools: true, seed: 99 });
    expect(other.line.token_ids.slice(0, token + 1)).toEqual(changed.token_ids.slice(0, token + 1));
  });

  it("to the same token, with recorded answers, goes on as far as the calls are equal", async () => {
    const { line, token } = await findCall();
    const last = line.turns.findLast(({ role }) => role === "assistant")!;
    const { line: same } = await replay.fork(line, last.start, { replacement: line.token_ids[last.start] });
    expect(same.messages.slice(0, -1)).toEqual(line.messages.slice(0, -1));
    expect([same.reward, same.score, same.success]).toEqual([null, null, null]);
    const digit = replay.engine.detokenize([line.token_ids[token]!]) === "7" ? "8" : "7";
    // If the text is still a call, it is another one, without a recorded answer.
    const changed = replay.fork(line, token, { replacement: replay.tokenize(digit)[0] });
    await expect(changed).rejects.toMatchObject({
      code: "replay/needs-live-tools",
      remedy: expect.stringContaining("--live-tools"),
    });
  });

  it("must be one that was sampled, and a token of the model", async () => {
    const { line, token } = await findCall();
    await expect(replay.fork(line, 1)).rejects.toMatchObject({ code: "replay/bad-token" });
    await expect(replay.fork(line, token, { replacement: 1e6 })).rejects.toMatchObject({ code: "replay/bad-token" });
  });

  it("has alternatives: the recorded token is among them with its logprob", async () => {
    const { line, token } = await findCall();
    const found = await replay.alternatives(line, token, { count: 50 });
    expect(found).toHaveLength(50);
    const own = found.find(({ id }) => id === line.token_ids[token]);
    expect(own!.logprob).toBe(Math.fround(line.rollout_logprobs[token]!));
    expect(own!.text).toMatch(/^\d$/);
  });
});

it("scores a conversation with the newest weights", async () => {
  const [line] = await readLines("rollouts/1.jsonl");
  const { step, logprobs } = await replay.scoreNow(line!);
  expect(step).toBe(STEPS);
  expect(logprobs.map((x) => (x === 0 ? 0 : 1))).toEqual(line!.response_mask);
  const [first] = await readLines("validation/6.jsonl");
  // Made with these weights: the trainer's graph differs from the sampler's in last bits alone.
  const now = await replay.scoreNow(first!, { validation: true });
  now.logprobs.forEach((logprob, t) => {
    expect(Math.abs(logprob - first!.rollout_logprobs[t]!)).toBeLessThan(1e-3);
  });
});

it("misspelt options of a replay are refused", async () => {
  const loose = (options: object) => options as never;
  const line = loose({});
  const misspelt: [call: Promise<unknown>, subject: string, option: string][] = [
    [replay.replay([], loose({ untill: 3 })), "replay.replay: untill", "until"],
    [replay.fork(line, 1, loose({ livetools: true })), "replay.fork: livetools", "liveTools"],
    [replay.alternatives(line, 1, loose({ cout: 3 })), "replay.alternatives: cout", "count"],
    [replay.scoreNow(line, loose({ validations: true })), "replay.scoreNow: validations", "validation"],
  ];
  for (const [call, subject, option] of misspelt)
    await expect(call).rejects.toMatchObject({ code: "config/unknown-key", subject, expected: `perhaps "${option}"` });
});

describe("a replay is refused", () => {
  const refusals: [string, Partial<DumpLine>, string][] = [
    ["that failed", { error: "the tool broke" }, "replay/failed"],
    ["that was aborted", { finish_reason: "aborted" }, "replay/failed"],
    ["of an agent", { segments: [{ start: 0, end: 9, parent: -1, messages: [] }] }, "replay/own-loop"],
    ["without logprobs", { rollout_logprobs: [] }, "replay/not-recorded"],
    ["without a step", { step: null }, "replay/not-recorded"],
    ["of another row", { ground_truth: "no such answer" }, "replay/no-row"],
  ];
  it.each(refusals)("of a conversation %s", async (_, change, code) => {
    const [line] = await readLines("rollouts/1.jsonl");
    const error = await replay.replay([{ ...line!, ...change }]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, subject: expect.any(String), expected: expect.any(String) });
  });

  it("of a run that was not deterministic, or on another class of kernels", async () => {
    const [line] = await readLines("rollouts/6.jsonl");
    const copies: [string, string][] = [
      [
        copyRun("loose", "config.json", (json) => {
          json.actor_rollout_ref.rollout.deterministic = false;
        }),
        "replay/not-deterministic",
      ],
      [
        copyRun("kernel", "checkpoints/global_step_6/data.json", (json) => {
          json.machine = { cpu_kernel: "abacus", ggml_build: "none" };
        }),
        "replay/other-kernel",
      ],
    ];
    for (const [copy, code] of copies) {
      const opened = await openReplay(copy);
      await expect(opened.replay([line!])).rejects.toMatchObject({ code, remedy: expect.any(String) });
      await opened.close();
    }
  });

  it("with another model, before anything is loaded", async () => {
    const copy = copyRun("model", "run.json", (json) => {
      json.model_file.hash = "0".repeat(64);
    });
    await expect(openReplay(copy)).rejects.toMatchObject({
      code: "replay/other-model",
      expected: expect.stringContaining("000000"),
    });
    const gone = copyRun("gone", "run.json", (json) => {
      json.model = join(folder, "gone.gguf");
    });
    await expect(openReplay(gone)).rejects.toMatchObject({ code: "replay/no-model" });
  });
});

it("of a run that a program trained uses the program's values", async () => {
  const add = tool({
    name: "calculator",
    description: "Computes.",
    inputSchema: z.object({ expression: z.string() }),
    execute: ({ expression }) => String(expression.split("+").reduce((a, b) => a + Number(b), 0)),
  });
  const rows = Array.from({ length: 4 }, (_, i) => ({
    question: `There are ${i + 20} marbles in a box and 7 marbles in a bag. How many marbles in total?`,
  }));
  const given: TrainOptions = {
    model: fileURLToPath(new URL("../../../../models/cria-tiny.gguf", import.meta.url)),
    task: defineTask({
      rows,
      tools: [add],
      reward: ({ answer }) => answer.length,
      maxTurns: 3,
      maxPromptLength: 120,
      maxResponseLength: 128,
    }),
    n: 2,
    steps: 2,
    batchSize: 4,
    threads: 1,
    folder,
    name: "program",
  };
  const { folder: made } = await train(given);
  const opened = await openReplay(made, { train: given });
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(made, "rollouts", "2.jsonl"))) lines.push(line);
  expect((await opened.replay(lines)).every(({ equal }) => equal)).toBe(true);
  expect(opened.trainedSteps).toBe(1);
  expect(lines.some(({ turns }) => turns.some(({ role }) => role === "tool"))).toBe(true);
  await opened.close();
});
