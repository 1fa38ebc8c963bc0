import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TrainingBus } from "../cluster/training-bus.js";
import { openReplay } from "../replay/open-replay.js";
import type { Replay } from "../replay/replay.js";
import type { StepMetrics } from "../step-metrics.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { makeWaitingTask } from "../testing/waiting-task.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";
import { openTraining } from "./training.js";

const folder = mkdtempSync(join(tmpdir(), "cria-partial-"));
const BATCH = 4;

const options: TrainOptions = {
  model: fileURLToPath(new URL("../../../../models/cria-tiny.gguf", import.meta.url)),
  task: makeWaitingTask({ steps: 3, batchSize: BATCH }),
  n: 2,
  steps: 3,
  batchSize: BATCH,
  learningRate: 5e-3,
  lag: 1,
  config: { data: { shuffle: false } },
  save: { every: 1, keep: 10 },
  threads: 1,
  folder,
};

const versions = ({ turns }: DumpLine) =>
  turns.filter(({ role }) => role === "assistant").map(({ policy_version }) => policy_version);
const isSwitched = (line: DumpLine) => versions(line)[1] === 2;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const modes = ["switch", "switch_keep_kv"] as const;
/** By mode: the logprob of the first token behind the switch, by all tokens up to it. */
const logprobs = modes.map(() => new Map<string, number>());

describe.each(modes)("conversations that an update finds unfinished, with partial_rollout %s", (partialRollout) => {
  const steps: StepMetrics[] = [];
  const notices: string[] = [];
  // A task opens its answers once.
  const task = makeWaitingTask({ steps: 3, batchSize: BATCH });
  const given: TrainOptions = { ...options, task, partialRollout, name: partialRollout };
  let made: string;
  let lines: DumpLine[];
  let replay: Replay;
  beforeAll(async () => {
    const run = train({ ...given, report: (event) => event.type === "notice" && notices.push(...[event.text].flat()) });
    for await (const { metrics } of run) steps.push(metrics);
    ({ folder: made } = await run);
    lines = [];
    for await (const line of readDump(join(made, "rollouts", "2.jsonl"))) lines.push(line);
    for (const line of lines.filter(isSwitched)) {
      const { start } = line.turns.filter(({ role }) => role === "assistant")[1]!;
      const tokens = line.token_ids.slice(0, start + 1).join();
      logprobs[modes.indexOf(partialRollout)]!.set(tokens, line.rollout_logprobs[start]!);
    }
    replay = await openReplay(made, { train: given });
  });
  afterAll(() => replay?.close());

  it("are sampled on by the newest version, at their next turn", () => {
    expect(lines.every((line) => versions(line)[0] === 1)).toBe(true);
    // A call whose numbers are not those of the question did not wait.
    expect(lines.filter(isSwitched).length).toBeGreaterThan(0);
    expect(steps[1]).toMatchObject({
      "training/off_policy/depends_on_clock": 1,
      "training/off_policy/trajectory_spans/max": 2,
      "training/off_policy/trajectory_staleness/min": 0,
      "training/off_policy/trajectory_staleness_worst/max": 1,
    });
    expect(notices.filter((text) => text.includes("clock"))).toHaveLength(1);
  });

  it("are held again to equal bits, each turn by the version that sampled it", async () => {
    const results = await replay.replay(lines);
    expect(results.every(({ equal }) => equal)).toBe(true);
    expect(replay.trainedSteps).toBe(0);
  });

  it("have the recorded logprobs by the weights of each turn", async () => {
    const line = lines.find(isSwitched)!;
    for (const { start } of line.turns.filter(({ role }) => role === "assistant")) {
      const found = await replay.alternatives(line, start, { count: 50 });
      const same = found.find(({ id }) => id === line.token_ids[start]);
      expect(same?.logprob).toBeCloseTo(line.rollout_logprobs[start]!, 6);
    }
  });

  it("can be forked behind the switch", async () => {
    const line = lines.find(isSwitched)!;
    const second = line.turns.filter(({ role }) => role === "assistant")[1]!;
    const { line: forked } = await replay.fork(line, second.start, { liveTools: true });
    expect(forked.token_ids.slice(0, second.start)).toEqual(line.token_ids.slice(0, second.start));
    expect(forked.token_ids.length).toBeGreaterThan(second.start);
  });

  it("gives a token that is put into a turn the logprob of this turn's weights", async () => {
    const line = lines.find(isSwitched)!;
    const said = line.turns.filter(({ role }) => role === "assistant");
    // With the keys and values of other weights the logprob is not the trainer's.
    for (const { start } of said.slice(0, partialRollout === "switch" ? 2 : 1)) {
      const [first, second] = await replay.alternatives(line, start, { count: 2 });
      const other = first!.id === line.token_ids[start] ? second! : first!;
      const { line: forked } = await replay.fork(line, start, { replacement: other.id, liveTools: true });
      expect(forked.rollout_logprobs[start]).toBeCloseTo(other.logprob, 4);
    }
  });

  it("are not held again where the weights of a turn were not saved: training again gives others", async () => {
    rmSync(join(made, "checkpoints", "global_step_1"), { recursive: true });
    const opened = await openReplay(made, { train: given });
    await expect(opened.replay(lines)).rejects.toMatchObject({ code: "replay/not-saved" });
    await opened.close();
  });
});

it("with kept keys and values the same tokens have other logprobs", () => {
  const [anew, kept] = logprobs;
  const both = [...anew!.keys()].filter((tokens) => kept!.has(tokens));
  expect(both.length).toBeGreaterThan(0);
  for (const tokens of both) expect(kept!.get(tokens)).not.toBe(anew!.get(tokens));
});

describe("partial_rollout switch", () => {
  const models = new TinyModels();
  afterAll(() => models.cleanUp());

  it("needs a lag", async () => {
    const run = train({ ...options, partialRollout: "switch", lag: 0, name: "no-lag" });
    await expect(run).rejects.toMatchObject({ code: "config/bad-value", subject: "train: partialRollout" });
  });

  it("is refused with a bus, whose workers it does not reach", async () => {
    const v1 = { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } };
    const made = await writeTinyRun(models, { rollout: { partial_rollout: "switch" }, trainer: { v1 } });
    await expect(openTraining(made.config, made.folder, { bus: {} as TrainingBus })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "actor_rollout_ref.rollout.partial_rollout",
    });
  });
});
