import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { getRuntimeInfo } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { checkConfig } from "../config/check-config.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { RunEvent } from "../events.js";
import { Policy } from "../policy/policy.js";
import { isStateful } from "../policy/stateful-engine.js";
import { listEngines } from "../run/run-state.js";
import { runTraining } from "../run/run-training.js";
import type { StepMetrics } from "../step-metrics.js";
import { dropTimes } from "../testing/drop-times.js";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { CheckpointStore } from "./checkpoint-store.js";
import { compareConfigs } from "./compare-configs.js";
import { restoreEngineState, verifyEngineState, writeEngineState } from "./engine-state.js";
import { findRunPath, type OpenedRun, openRun } from "./open-run.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const options: TinyTrainingOptions = {
  prompts: ["a", "bb", "ccc", "dddd", "eeeee"],
  data: { train_batch_size: 2 },
  actor: { ppo_mini_batch_size: 1, optim: { lr: 1e-2, lr_warmup_steps: 4 } },
  trainer: { total_training_steps: 6, save_freq: 1, val_before_train: false },
};

/** Trains a training's config as `cria train` does, as far as `until`. */
async function train(
  training: TinyTraining,
  until = 6,
): Promise<{ said: string[]; history: StepMetrics[]; path: string }> {
  const said: string[] = [];
  training.config.trainer.total_training_steps = until;
  training.settings.steps = until;
  const report = (event: RunEvent) => {
    if (event.type === "notice") said.push(event.text);
  };
  const { path, steps } = await runTraining(training, { report });
  return { said, path, history: steps };
}

/** A training like the given one, as a new process would open it: same config, an engine that learned nothing. */
async function reopen(training: TinyTraining, trainer: Record<string, unknown> = {}): Promise<TinyTraining> {
  const again = await openTinyTraining(models, options);
  const raw = JSON.parse(JSON.stringify(training.config)) as TrainConfig;
  const config = checkConfig(trainConfigSchema, { ...raw, trainer: { ...raw.trainer, ...trainer } }, "test");
  return Object.assign(again, { config });
}

function mount(...args: string[]): void {
  const { status, stderr } = spawnSync("mount", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

/** Only root may mount, and not in every container. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "cria-mount-"));
  const mounted = spawnSync("mount", ["-t", "tmpfs", "none", folder]).status === 0;
  if (mounted) spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true });
  return mounted;
}

/** A checkpoint's file as another machine would have written it: its checksum fits. */
function writeChecked(file: string, text: string): void {
  writeFileSync(file, text);
  const sums = join(dirname(file), "checksums.json");
  const contents = JSON.parse(readFileSync(sums, "utf8")) as { files: Record<string, string> };
  contents.files[basename(file)] = createHash("sha256").update(text).digest("hex");
  writeFileSync(sums, JSON.stringify(contents));
}

function replaceByFolder(file: string): void {
  rmSync(file);
  mkdirSync(file);
}

/** @throws Error when it changes nothing: such a test would see nothing either. */
function changeText(file: string, change: (text: string) => string): void {
  const text = readFileSync(file, "utf8");
  if (change(text) === text) throw new Error(`nothing to change in ${file}`);
  writeFileSync(file, change(text));
}

const readMetrics = (path: string) =>
  readFileSync(join(path, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => dropTimes(JSON.parse(line) as StepMetrics));

describe("a resumed run", () => {
  it("computes, step by step, the values of an uninterrupted one", async () => {
    const whole = await train(await openTinyTraining(models, options));
    const first = await openTinyTraining(models, options);
    const { path } = await train(first, 2);
    const { said } = await train(await reopen(first), 5);
    expect(said.join()).toMatch(/resuming after step 2/);
    const last = await train(await reopen(first), 6);
    expect(last.history.map((m) => m["training/global_step"])).toEqual([6]);
    expect(readMetrics(path)).toEqual(readMetrics(whole.path));
    expect(readMetrics(path)).toHaveLength(6);
    expect(readFileSync(join(path, "rollouts", "6.jsonl"), "utf8").replace(/"[a-z]+_s":[\d.e-]+/g, "")).toBe(
      readFileSync(join(whole.path, "rollouts", "6.jsonl"), "utf8").replace(/"[a-z]+_s":[\d.e-]+/g, ""),
    );
    expect(readFileSync(join(path, "adapter.gguf")).equals(readFileSync(join(whole.path, "adapter.gguf")))).toBe(true);
    // Complete: nothing is trained again.
    expect((await train(await reopen(first), 6)).history).toEqual([]);
    expect(readMetrics(path)).toHaveLength(6);
  });

  it("reports other kernels than it began with, but no change of its config", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 1);
    const { cpuKernel, ggmlBuild } = getRuntimeInfo();
    const machine = { cpu_kernel: cpuKernel, ggml_build: ggmlBuild };
    expect(JSON.parse(readFileSync(join(path, "config.json"), "utf8"))).toMatchObject({ machine });
    const same = await train(await reopen(training), 2);
    expect(same.said.join()).not.toMatch(/kernel|config has changed since[\s\S]*machine/);
    const file = join(path, "checkpoints", "global_step_2", "data.json");
    const contents = JSON.parse(readFileSync(file, "utf8"));
    expect(contents.machine).toEqual(machine);
    writeChecked(file, JSON.stringify({ ...contents, machine: { cpu_kernel: "avx1024", ggml_build: "z80" } }));
    const other = await train(await reopen(training), 3);
    expect(other.said.join("\n")).toContain("made by CPU kernel avx1024 with ggml's build z80");
    expect(other.said.join("\n")).toContain(`this process has CPU kernel ${cpuKernel} with ggml's build ${ggmlBuild}`);
    // Checkpoints of before say nothing of it.
    const third = join(path, "checkpoints", "global_step_3", "data.json");
    const { machine: _, ...rest } = JSON.parse(readFileSync(third, "utf8"));
    writeChecked(third, JSON.stringify(rest));
    expect((await train(await reopen(training), 4)).said.join()).not.toMatch(/kernel/);
  });

  it("forgets the steps after its checkpoint, and a line that was cut short", async () => {
    const training = await openTinyTraining(models, options);
    training.config.trainer.save_freq = 2;
    const { path } = await train(training, 4);
    const metrics = readFileSync(join(path, "metrics.jsonl"), "utf8");
    writeFileSync(join(path, "metrics.jsonl"), `${metrics}{"training/global_step":5}\n{"training/glob`);
    writeFileSync(join(path, "rollouts", "9.jsonl"), "{}\n");
    await train(await reopen(training), 6);
    expect(readMetrics(path).map((m) => m["training/global_step"])).toEqual([1, 2, 3, 4, 5, 6]);
    expect(readdirSync(join(path, "rollouts"))).not.toContain("9.jsonl");
  });

  it("critic and KL controller resume too; a checkpoint without a critic is refused by a run with one", async () => {
    const algorithm = { adv_estimator: "gae", use_kl_in_reward: true, kl_ctrl: { type: "adaptive", kl_coef: 0.1 } };
    const withCritic = { ...options, algorithm };
    const whole = await train(await openTinyTraining(models, withCritic), 4);
    const first = await openTinyTraining(models, withCritic);
    const { path } = await train(first, 2);
    const second = Object.assign(await openTinyTraining(models, withCritic), { config: (await reopen(first)).config });
    await train(second, 4);
    expect(readdirSync(join(path, "checkpoints", "global_step_4")).sort()).toEqual([
      "actor",
      "checksums.json",
      "critic",
      "data.json",
      "rng.json",
    ]);
    expect(readMetrics(path)).toEqual(readMetrics(whole.path));
    const plain = await openTinyTraining(models, options);
    await train(plain, 1);
    const later = Object.assign(await openTinyTraining(models, withCritic), { config: (await reopen(plain)).config });
    await expect(train(later, 2)).rejects.toMatchObject({
      code: "data/checkpoint-mismatch",
      expected: expect.stringContaining("critic"),
      remedy: expect.stringContaining("adv_estimator"),
    });
  });

  it("full training resumes too", async () => {
    const path = await models.write({ seed: 5, embeddingScale: 0.25 });
    const load = () => models.load({}, { path, trainable: "full", contextSize: 56, maxSequences: 16 });
    const training = await openTinyTraining(models, options);
    const whole = await train(Object.assign(training, { engine: await load() }), 3);
    const second = Object.assign(await openTinyTraining(models, options), { engine: await load() });
    const { path: folder } = await train(second, 1);
    await train(Object.assign(await reopen(second), { engine: await load() }), 3);
    expect(readMetrics(folder)).toEqual(readMetrics(whole.path));
  });
});

describe("checkpoints", () => {
  it("hold actor, data.json and rng.json; the newest is named; surplus ones go", async () => {
    const training = await openTinyTraining(models, options);
    training.config.trainer.max_actor_ckpt_to_keep = 2;
    const { path } = await train(training, 5);
    expect(readdirSync(join(path, "checkpoints")).sort()).toEqual(["global_step_4", "global_step_5"]);
    expect(readFileSync(join(path, "latest_checkpointed_iteration.txt"), "utf8")).toBe("5");
    const newest = join(path, "checkpoints", "global_step_5");
    expect(readdirSync(newest).sort()).toEqual(["actor", "checksums.json", "data.json", "rng.json"]);
    const { header } = await verifyEngineState(join(newest, "actor", "state.bin"));
    expect(header).toMatchObject({ architecture: "qwen3", trainable: "lora" });
    expect(header.stepCount).toBeGreaterThanOrEqual(5);
    expect(header.tensors.length).toBe(2 * 7 * 2);
  });

  it("become the newest only after they have their names", async () => {
    const training = await openTinyTraining(models, options);
    const store = new CheckpointStore(training.folder);
    const latest = () => readFileSync(join(training.folder, "latest_checkpointed_iteration.txt"), "utf8");
    const prepare = (step: number) => store.prepare({ step, engines: listEngines(training), data: {}, rng: {} });
    await (await prepare(1)).commit();
    expect(latest()).toBe("1");
    const pending = await prepare(2);
    // The written files are removed, so that the rename fails: other tools must still see the first checkpoint as the
    // newest.
    for (const name of readdirSync(store.path).filter((name) => name.endsWith(".tmp")))
      rmSync(join(store.path, name), { recursive: true });
    await expect(pending.commit()).rejects.toMatchObject({
      code: "data/write-failed",
      subject: expect.stringContaining("global_step_2"),
    });
    expect(latest()).toBe("1");
    expect(await store.list()).toEqual([1]);
  });

  it("a damaged newest one is passed over, and named", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 3);
    const whole = readMetrics(path);
    const kept = `${path}.kept`;
    cpSync(path, kept, { recursive: true });
    for (const damage of [
      (folder: string) => truncateSync(join(folder, "actor", "state.bin"), 1000),
      (folder: string) => {
        const file = join(folder, "actor", "state.bin");
        const bytes = readFileSync(file);
        bytes[bytes.length >> 1]! ^= 1;
        writeFileSync(file, bytes);
      },
      (folder: string) => rmSync(join(folder, "actor"), { recursive: true }),
      (folder: string) => writeFileSync(join(folder, "data.json"), "{"),
      (folder: string) => rmSync(join(folder, "rng.json")),
      (folder: string) => rmSync(join(folder, "checksums.json")),
      (folder: string) => replaceByFolder(join(folder, "actor", "state.bin")),
      (folder: string) => replaceByFolder(join(folder, "data.json")),
      // Still JSON of that step, with another number somewhere.
      (folder: string) =>
        changeText(join(folder, "data.json"), (text) => text.replace(/"position": \d+/, '"position": 7')),
      (folder: string) => changeText(join(folder, "rng.json"), (text) => text.replace(/"step": \d+/, '"step": 12')),
      (folder: string) =>
        changeText(join(folder, "checksums.json"), (text) => text.replace(/[0-9a-f]{64}/, "0".repeat(64))),
      // A whole state, of another step.
      (folder: string) =>
        copyFileSync(join(folder, "..", "global_step_2", "actor", "state.bin"), join(folder, "actor", "state.bin")),
    ]) {
      rmSync(path, { recursive: true });
      cpSync(kept, path, { recursive: true });
      damage(join(path, "checkpoints", "global_step_3"));
      const { said, history } = await train(await reopen(training), 3);
      expect(said.join("\n")).toMatch(/global_step_3 is damaged, trying the one before it[\s\S]*after step 2/);
      expect(history).toHaveLength(1);
      expect(readMetrics(path)).toEqual(whole);
      expect(readdirSync(join(path, "checkpoints"))).toContain("global_step_3.superseded");
    }
  });

  it("refuses a folder named like the metrics file, by name", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 1);
    replaceByFolder(join(path, "metrics.jsonl"));
    await expect(train(await reopen(training), 2)).rejects.toMatchObject({
      code: "data/write-failed",
      subject: join(path, "metrics.jsonl"),
    });
  });

  it("if all are damaged nothing is started anew", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 1);
    truncateSync(join(path, "checkpoints", "global_step_1", "actor", "state.bin"), 5);
    await expect(train(await reopen(training))).rejects.toMatchObject({
      code: "data/bad-checkpoint",
      subject: expect.stringMatching(/state\.bin$/),
    });
    expect(readMetrics(path)).toHaveLength(1);
  });

  it("half-written ones of a killed process are swept away", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 1);
    mkdirSync(join(path, "checkpoints", "global_step_2.123.tmp", "actor"), { recursive: true });
    await train(await reopen(training), 2);
    expect(readdirSync(join(path, "checkpoints")).sort()).toEqual(["global_step_1", "global_step_2"]);
  });

  it("refuses a run folder that cannot be created, with a remedy", async () => {
    const training = await openTinyTraining(models, options);
    writeFileSync(join(models.folder, "a-file"), "");
    training.config.trainer.default_local_dir = join(models.folder, "a-file");
    await expect(openRun(training.config, () => undefined)).rejects.toMatchObject({
      code: "data/write-failed",
      remedy: expect.stringContaining("default_local_dir"),
    });
  });

  it.skipIf(!canMount())("a disk that fills up, and one that is read-only", async () => {
    const disk = join(models.folder, "disk");
    mkdirSync(disk);
    const training = await openTinyTraining(models, options);
    // Room for a few checkpoints of about 50 kB.
    mount("-t", "tmpfs", "-o", "size=256k", "none", disk);
    try {
      training.config.trainer.default_local_dir = disk;
      await expect(train(training)).rejects.toMatchObject({
        code: "data/write-failed",
        received: expect.stringMatching(/ENOSPC|No space left/),
        remedy: expect.stringContaining("space"),
      });
      const steps = readdirSync(join(findRunPath(training.config), "checkpoints"));
      expect(steps.length).toBeGreaterThan(0);
      expect(steps.filter((name) => name.endsWith(".tmp"))).toEqual([]);
      mount("-o", "remount,size=16m", disk);
      expect((await train(await reopen(training))).history.length).toBeGreaterThan(0);
      mount("-o", "remount,ro", disk);
      await expect(train(await reopen(training))).rejects.toMatchObject({
        code: "data/write-failed",
        received: expect.stringContaining("EROFS"),
        remedy: expect.stringContaining("default_local_dir"),
      });
    } finally {
      spawnSync("umount", [disk]);
    }
  });

  it("a checkpoint that cannot be written ends the run, leaves the last good one, and no half", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 1);
    const again = await reopen(training);
    const failing = new Proxy(again.policy.engine, {
      get: (target, name) =>
        name === "readTensor"
          ? () => Promise.reject(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }))
          : typeof Reflect.get(target, name, target) === "function"
            ? (Reflect.get(target, name, target) as () => unknown).bind(target)
            : Reflect.get(target, name, target),
    });
    await expect(
      train({ ...again, policy: new Policy({ ...again.policy, engine: failing }) }, 3),
    ).rejects.toMatchObject({
      code: "data/write-failed",
      subject: expect.stringMatching(/global_step_2$/),
      received: expect.stringContaining("ENOSPC"),
      remedy: expect.stringContaining("space"),
    });
    expect(readdirSync(join(path, "checkpoints"))).toEqual(["global_step_1"]);
    expect((await train(await reopen(training), 2)).history).toHaveLength(1);
  });

  it("those of another model are refused before anything is changed", async () => {
    const one = await openTinyTraining(models, options);
    const two = await models.load({}, { lora: { rank: 2, alpha: 4 } });
    if (!isStateful(one.policy.engine)) throw new Error("the tiny model keeps a state");
    const file = join(models.folder, "state.bin");
    await writeEngineState(file, one.policy.engine);
    await expect(restoreEngineState(file, two)).rejects.toMatchObject({
      code: "data/checkpoint-mismatch",
      subject: file,
      expected: expect.stringMatching(/lora_[ab] \[/),
    });
  });
});

describe("the run folder", () => {
  it("resume_mode disable moves an earlier run aside and says where", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 2);
    const { said, history } = await train(await reopen(training, { resume_mode: "disable" }), 1);
    expect(said.join()).toContain(`${path}.old-1`);
    expect(history.map((m) => m["training/global_step"])).toEqual([1]);
    expect(readMetrics(`${path}.old-1`)).toHaveLength(2);
    expect(existsSync(join(`${path}.old-1`, "run.lock"))).toBe(false);
    // So does a run that was killed before its first checkpoint.
    rmSync(join(path, "checkpoints"), { recursive: true });
    expect((await train(await reopen(training), 1)).said.join()).toContain(`${path}.old-2`);
  });

  it("resume_path goes on from another run's checkpoint, and leaves that run alone", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 4);
    const whole = readMetrics(path);
    const from = { resume_mode: "resume_path", experiment_name: "branch" };
    const branch = await train(
      await reopen(training, { ...from, resume_from_path: join(path, "checkpoints", "global_step_2") }),
      4,
    );
    expect(branch.path).not.toBe(path);
    expect(readMetrics(branch.path)).toEqual(whole.slice(2));
    expect(readMetrics(path)).toEqual(whole);
    const newest = await train(await reopen(training, { ...from, resume_from_path: path, experiment_name: "b2" }), 5);
    expect(newest.history.map((m) => m["training/global_step"])).toEqual([5]);
    await expect(train(await reopen(training, { ...from, resume_from_path: models.folder }))).rejects.toMatchObject({
      code: "data/bad-checkpoint",
      subject: models.folder,
    });
    await expect(train(await reopen(training, from))).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "trainer.resume_from_path",
      received: "null",
    });
  });

  it("resume_path within the run sets the later checkpoints aside", async () => {
    const training = await openTinyTraining(models, options);
    const { path } = await train(training, 3);
    const whole = readMetrics(path);
    const back = { resume_mode: "resume_path", resume_from_path: join(path, "checkpoints", "global_step_1") };
    await train(await reopen(training, back), 2);
    expect(readMetrics(path)).toEqual(whole.slice(0, 2));
    expect(readdirSync(join(path, "checkpoints")).sort()).toEqual([
      "global_step_1",
      "global_step_2",
      "global_step_2.superseded",
      "global_step_3.superseded",
    ]);
  });

  it("config changed between runs: the keys are named; those that would make nonsense are refused", async () => {
    const training = await openTinyTraining(models, options);
    await train(training, 1);
    const changed = await reopen(training);
    changed.config.actor_rollout_ref.actor.optim.lr = 5e-3;
    changed.config.actor_rollout_ref.rollout.n = 2;
    const { said } = await train(changed, 2);
    expect(said.join("\n")).toMatch(/actor\.optim\.lr: 0\.01 -> 0\.005[\s\S]*rollout\.n: 4 -> 2/);
    const other = await reopen(training);
    other.config.actor_rollout_ref.model.lora_alpha = 64;
    await expect(train(other, 3)).rejects.toMatchObject({
      code: "config/changed-since-checkpoint",
      subject: expect.stringMatching(/lora_alpha$/),
      expected: "8",
      received: "64",
    });
  });

  it("belongs to one living process", async () => {
    const training = await openTinyTraining(models, options);
    const run: OpenedRun = await openRun(training.config, () => undefined);
    await expect(train(training, 1)).rejects.toMatchObject({
      code: "data/run-in-use",
      received: expect.stringContaining("run.lock"),
    });
    run.close();
    const { history } = await train(training, 1);
    expect(history).toHaveLength(1);
    expect(existsSync(`${findRunPath(training.config)}.run.lock`)).toBe(false);
  });
});

describe("comparing configs", () => {
  it("names every differing key", () => {
    expect(compareConfigs({ a: 1, b: { c: [1], d: 2 }, e: 3 }, { a: 1, b: { c: [1, 2], d: 2 }, f: null })).toEqual([
      { key: "b.c", before: [1], after: [1, 2] },
      { key: "f", before: undefined, after: null },
      { key: "e", before: 3, after: undefined },
    ]);
  });
});
