import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import type { PickRequest, RowSampler, RowSamplerClass, RowSamplerOptions, StepOutcome } from "@cria/rollout";
import { afterAll, describe, expect, it } from "vitest";
import { hashSync } from "../testing/hash-sync.js";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { openRegistries } from "../user-code/registries.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const STEPS = 5;
const prompts = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];

function options(lag: number, more: TinyTrainingOptions = {}): TinyTrainingOptions {
  const mode = lag > 0 ? "colocate_async" : "sync";
  return {
    prompts,
    ...more,
    data: { train_batch_size: 2, sampler: { class_name: "mine" }, ...more.data },
    actor: { ppo_mini_batch_size: 2 },
    trainer: {
      total_training_steps: STEPS,
      val_before_train: false,
      v1: { trainer_mode: mode, colocate_async: { num_warmup_batches: lag } },
      ...more.trainer,
    },
  };
}

/** Calls of a sampler in order: "pick 3", "told 1". */
type Log = string[];

/** Makes a sampler whose picks depend on all outcomes that it received, and on the step. */
function makeCurriculum(log: Log = [], outcomes: StepOutcome[] = []): RowSamplerClass {
  return class implements RowSampler {
    private sum = 0;
    constructor(
      readonly rows: readonly object[],
      readonly options: RowSamplerOptions,
    ) {}
    pick({ step, count, spare }: PickRequest) {
      log.push(`pick ${step}`);
      const first = (Math.floor(1000 * this.sum) + step) % this.rows.length;
      return Array.from({ length: count + spare }, (_, i) => (first + i) % this.rows.length);
    }
    update(outcome: StepOutcome) {
      log.push(`told ${outcome.step}`);
      outcomes.push(outcome);
      for (const { rewards } of outcome.rows) this.sum += rewards.reduce((a, b) => a + b, 0);
    }
    save() {
      return { sum: this.sum };
    }
    restore(state: unknown) {
      ({ sum: this.sum } = state as { sum: number });
    }
  };
}

async function open(lag: number, sampler: unknown, more: TinyTrainingOptions = {}): Promise<TinyTraining> {
  const registries = openRegistries();
  registries.rowSamplers.register("mine", sampler as RowSamplerClass);
  return openTinyTraining(models, { ...options(lag, more), registries });
}

async function train(training: TinyTraining) {
  try {
    const summary = await runTraining(training, { configFolder: training.folder });
    return { ...summary, sha: hashSync(summary.weights) };
  } finally {
    await training.dispose();
  }
}

/** Reads the uids of a step's rows from the dump. */
function readRows(path: string, step: number): string[] {
  const lines = readFileSync(join(path, "rollouts", `${step}.jsonl`), "utf8")
    .trim()
    .split("\n");
  return [...new Set(lines.map((line) => (JSON.parse(line) as { uid: string }).uid))];
}

describe("data.sampler", () => {
  it("a function picks the rows of each step", async () => {
    const training = await open(0, ({ step, count, rows }: PickRequest & { rows: object[] }) =>
      Array.from({ length: count }, (_, i) => (step + 3 * i) % rows.length),
    );
    const uids = training.trainRows.map(({ uid }) => uid);
    const { path } = await train(training);
    for (const step of [1, 2, 3]) expect(readRows(path, step)).toEqual([uids[step % 6], uids[(step + 3) % 6]]);
  });

  it("may say how many conversations a row has in a step", async () => {
    const asked: number[] = [];
    const training = await open(1, ({ step, samples }: PickRequest) => {
      asked.push(samples);
      return [{ row: step % 6, samples: step + 1 }, (step + 1) % 6];
    });
    const uids = training.trainRows.map(({ uid }) => uid);
    const { path } = await train(training);
    for (const step of [1, 4]) {
      const lines = readFileSync(join(path, "rollouts", `${step}.jsonl`), "utf8")
        .trim()
        .split("\n");
      const held = lines.map((line) => (JSON.parse(line) as { uid: string }).uid);
      expect(held).toEqual([...Array(step + 1).fill(uids[step % 6]), ...Array(4).fill(uids[(step + 1) % 6])]);
    }
    expect(new Set(asked)).toEqual(new Set([4]));
  });

  it("a file's class is made with the rows, and gets the outcome of each step", async () => {
    const training = await openTinyTraining(models, options(0, { data: { sampler: {} } }));
    await training.dispose();
    const { config, folder } = training;
    const file = `
      export class Mine {
        constructor(rows, options) { globalThis.seenBySampler = { rows, options, told: [] }; }
        pick({ step, count }) { return Array.from({ length: count }, (_, i) => (step + i) % 6); }
        update(outcome) { globalThis.seenBySampler.told.push(outcome); }
        save() { return null; }
        restore() {}
      }`;
    writeFileSync(join(folder, "sampler.mjs"), file);
    config.data.sampler = { class_path: "sampler.mjs", class_name: "Mine", sampler_kwargs: { a: 1 } };
    const opened = await openTraining(config, folder);
    const { path, steps } = await runTraining(opened, { configFolder: folder });
    await opened.dispose();
    type Seen = { rows: { uid: string }[]; options: object; told: StepOutcome[] };
    const { seenBySampler: seen } = globalThis as unknown as { seenBySampler: Seen };
    delete (globalThis as { seenBySampler?: unknown }).seenBySampler;
    expect(seen.rows).toEqual(opened.trainRows);
    expect(seen.options).toEqual({ batchSize: 2, seed: 0, kwargs: { a: 1 } });
    // The last step's outcome is not reported, because no later step is dealt.
    expect(seen.told.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    for (const { step, rows } of seen.told) {
      expect(rows.map(({ row }) => opened.trainRows[row]!.uid)).toEqual(readRows(path, step));
      const rewards = rows.flatMap((row) => row.rewards);
      expect(rewards).toHaveLength(8);
      const mean = rewards.reduce((a, b) => a + b, 0) / 8;
      expect(mean).toBeCloseTo(steps[step - 1]!["critic/score/mean"]!, 6);
      for (const { success } of rows) expect(success).toBeGreaterThanOrEqual(0);
    }
  });

  it.each([1, 2])("with a lag of %i its knowledge follows the schedule, in any order of completion", async (lag) => {
    const expected = Array.from({ length: STEPS }, (_, i) => i + 1).flatMap((step) =>
      step - 1 - lag > 0 ? [`told ${step - 1 - lag}`, `pick ${step}`] : [`pick ${step}`],
    );
    const log: Log = [];
    const first = await train(await open(lag, makeCurriculum(log)));
    expect(log).toEqual(expected);
    const delayed =
      "return new Promise((done) => setTimeout(() => done([...text].filter((c) => c < '~').length / 8), truth.length));";
    const plain = "return [...text].filter((c) => c < '~').length / 8;";
    const [slow, quick] = [
      await train(await open(lag, makeCurriculum(), { reward: delayed })),
      await train(await open(lag, makeCurriculum(), { reward: plain })),
    ];
    expect(slow.sha).toBe(quick.sha);
    expect(first.steps).toHaveLength(STEPS);
  });

  it.each([
    [0, 2],
    [2, 1],
    [2, 3],
  ])("with a lag of %i, interrupted in step %i, goes on to equal bits", async (lag, at) => {
    const whole = await train(await open(lag, makeCurriculum()));
    const controller = new AbortController();
    const interrupted = await open(lag, makeCurriculum(), { signal: controller.signal });
    const afterStep = async () => {
      if (interrupted.policy.updates === at) controller.abort(new Error("interrupted"));
    };
    const training = runTraining(interrupted, { configFolder: interrupted.folder, afterStep });
    await expect(training).rejects.toThrow(TrainingInterrupted);
    await interrupted.dispose();
    const log: Log = [];
    const again = await open(lag, makeCurriculum(log));
    again.config.trainer.default_local_dir = interrupted.config.trainer.default_local_dir;
    again.config.actor_rollout_ref.model.path = interrupted.config.actor_rollout_ref.model.path;
    expect((await train(again)).sha).toBe(whole.sha);
    // It receives no outcome twice, and none that the schedule withholds.
    expect(log[0]).toBe(at - lag > 0 ? `told ${at - lag}` : `pick ${at + 1}`);
  });

  it("names the rows that filter_groups may take, and gets the groups that it left out", async () => {
    const outcomes: StepOutcome[] = [];
    const requests: PickRequest[] = [];
    const Base = makeCurriculum([], outcomes);
    class Watched extends Base {
      override pick(request: PickRequest) {
        requests.push(request);
        return Array.from({ length: request.count + request.spare }, (_, i) => i);
      }
    }
    const training = await open(1, Watched, {
      // Groups of the first and third row have no spread.
      reward: "return truth.length % 2 ? 1 : text.length % 3;",
      algorithm: { filter_groups: { enable: true, max_num_gen_batches: 2 } },
    });
    const { path } = await train(training);
    expect(requests.map(({ count, spare }) => [count, spare])).toEqual(Array(STEPS).fill([2, 2]));
    const uids = training.trainRows.map(({ uid }) => uid);
    expect(readRows(path, 1)).not.toContain(uids[0]);
    for (const { rows } of outcomes) expect(rows.map(({ row }) => row).sort()).toEqual([0, 1, 2, 3]);
    expect(outcomes[0]!.rows.find(({ row }) => row === 0)).toEqual({ row: 0, rewards: [1, 1, 1, 1], success: 1 });
  });

  it("refuses a checkpoint of another order, a state that no file holds, and a wrong pick", async () => {
    const first = await open(0, makeCurriculum());
    await train(first);
    const passes = await openTinyTraining(models, options(0, { data: { train_batch_size: 2, sampler: {} } }));
    passes.config.trainer.default_local_dir = first.config.trainer.default_local_dir;
    passes.config.actor_rollout_ref.model.path = first.config.actor_rollout_ref.model.path;
    await expect(train(passes)).rejects.toMatchObject({ code: "data/other-loader" });
    const Base = makeCurriculum();
    class Unsaved extends Base {
      override save() {
        return { seen: new Set([1]) } as never;
      }
    }
    await expect(open(0, Unsaved).then(train)).rejects.toMatchObject({ code: "data/bad-sampler-state" });
    await expect(open(0, () => [0, 0]).then(train)).rejects.toMatchObject({ code: "data/bad-pick" });
  });

  it.each<[string, object, string]>([
    ["a file without a name", { class_path: "reward.mjs" }, "data.sampler.class_name"],
    ["a name that nothing has", { class_name: "nobody" }, "data.sampler.class_name"],
  ])("refuses %s", async (_, sampler, subject) => {
    const opened = openTinyTraining(models, options(0, { data: { sampler } }));
    await expect(opened).rejects.toMatchObject({ subject });
  });

  it("difficulty is built in, with as many conversations for each row, or more for harder ones", async () => {
    const trainWith = async (kwargs: object) => {
      const data = {
        train_batch_size: 5,
        sampler: { class_name: "difficulty", sampler_kwargs: { rate: 1, ...kwargs } },
      };
      const reward = "return truth.length > 2 && text.charCodeAt(0) < 128 ? 1 : 0;";
      return train(await openTinyTraining(models, options(1, { data, reward })));
    };
    const even = await trainWith({});
    expect(even.steps).toHaveLength(STEPS);
    expect((await trainWith({})).sha).toBe(even.sha);
    const harder = await trainWith({ samples: "harder" });
    expect(harder.sha).not.toBe(even.sha);
    expect((await trainWith({ samples: "harder" })).sha).toBe(harder.sha);
  });
});
