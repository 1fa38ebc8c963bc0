import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeTinyModel } from "@cria/engine/testing";
import { type RunEvent, train } from "@cria/trainer";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CheckpointPointer } from "../bus/job-bus.js";
import { hashText } from "../bus/job-record.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { Leader } from "./lead.js";
import { storeCheckpoint } from "./stored-checkpoints.js";

const STEPS = 3;
let folder: string;
let plain: Awaited<ReturnType<typeof trainOn>>;
let events: RunEvent[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cria-checkpoints-"));
  await makeTinyModel(join(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
  const rows = ["a", "bb", "ccc", "dddd"].map((content, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    reward_model: { style: "rule", ground_truth: content },
    extra_info: { index },
  }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(join(folder, "reward.mjs"), "export const computeScore = (source, text) => [...text].length;\n");
  plain = await trainOn(undefined, "plain");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  events = [];
});

interface Options {
  /** Steps after which this coordinator ends. */
  stopAfter?: number;
  share?: boolean;
}

/** A coordinator with its own disk. */
async function trainOn(hub: LocalHub | undefined, disk: string, { stopAfter = STEPS, share = true }: Options = {}) {
  const bus = hub && openLocalBus({ hub });
  const run = train({
    config: {
      actor_rollout_ref: {
        model: { path: "model.gguf", lora_rank: 4 },
        actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 1, ppo_max_token_len: 128 },
        rollout: { n: 2, prompt_length: 48, response_length: 8, max_num_seqs: 4, seed: 1 },
      },
      data: {
        train_files: "rows.jsonl",
        val_files: "rows.jsonl",
        train_batch_size: 2,
        max_prompt_length: 48,
        max_response_length: 8,
      },
      custom_reward_function: { path: "reward.mjs" },
      trainer: {
        threads: 1,
        total_training_steps: STEPS,
        default_local_dir: join(folder, disk),
        project_name: "tests",
        experiment_name: "shared run",
        save_freq: 1,
        val_before_train: true,
      },
      cluster: { share_checkpoints: share, share_model: false },
    },
    configFolder: folder,
    resume: true,
    bus,
    report: (event) => events.push(event),
  });
  const steps: number[] = [];
  for await (const { step } of run) {
    steps.push(step);
    if (step === stopAfter) run.stop();
  }
  const result = await run;
  await bus?.close();
  return {
    steps,
    before: result.before,
    after: result.after,
    adapter: createHash("sha256").update(readFileSync(result.adapter!)).digest("hex"),
    metrics: readFileSync(join(result.folder, "metrics.jsonl"), "utf8").trim().split("\n").length,
  };
}

const runFolder = (disk: string) => join(folder, disk, "tests", "shared run");
const texts = (type: "warning" | "notice") => events.flatMap((event) => (event.type === type ? [event.text] : []));
const readPointer = (hub: LocalHub) => hub.control.get(`checkpoint.${hashText("tests/shared run")}`);
/** The newest checkpoint on the bus. */
async function listStored(hub: LocalHub) {
  const { manifest, step } = JSON.parse((await readPointer(hub))!.text) as CheckpointPointer;
  const { files } = JSON.parse(Buffer.from(await hub.blobs.get(manifest)).toString()) as {
    files: { name: string; parts: string[] }[];
  };
  return { step, files };
}

describe("checkpoints on the bus", () => {
  it("let a coordinator with another disk go on, to the bits of a run that nothing disturbed", async () => {
    const hub = new LocalHub();
    expect(await trainOn(hub, "first", { stopAfter: 1 })).toMatchObject({ steps: [1] });
    rmSync(join(folder, "first"), { recursive: true });
    const second = await trainOn(hub, "second", { stopAfter: 2 });
    expect(second.steps).toEqual([2]);
    expect(texts("notice").join("\n")).toContain("the checkpoint of step 1 was fetched from the bus");
    expect(readdirSync(join(folder, "second", "tests"))).toEqual(["shared run"]);
    // Measurements from before it joined count, too.
    expect(await trainOn(hub, "third")).toEqual({ ...plain, steps: [3] });
    // All steps are done: the second has an older checkpoint, and the fourth has none.
    for (const disk of ["second", "fourth"])
      expect(await trainOn(hub, disk)).toMatchObject({ adapter: plain.adapter, metrics: plain.metrics, steps: [] });
    expect(existsSync(join(runFolder("second"), "checkpoints", "global_step_2"))).toBe(true);
    expect(texts("warning")).toEqual([]);
  });

  it("are there only when asked for, and only the newest", async () => {
    const hub = new LocalHub();
    await trainOn(hub, "silent", { stopAfter: 1, share: false });
    expect(await readPointer(hub)).toBeUndefined();
    await trainOn(hub, "kept", { stopAfter: 1 });
    const old = (await listStored(hub)).files.flatMap(({ parts }) => parts);
    expect(old.filter((sha) => hub.blobs.entries.has(sha))).toEqual(old);
    await trainOn(hub, "kept", { stopAfter: 2 });
    expect(old.filter((sha) => hub.blobs.entries.has(sha))).toEqual([]);
    const { step, files } = await listStored(hub);
    expect(step).toBe(2);
    expect(files.map(({ name }) => name)).toEqual([
      "config.json",
      "metrics.jsonl",
      "validation/0.jsonl",
      "checkpoints/global_step_2/checksums.json",
      "checkpoints/global_step_2/data.json",
      "checkpoints/global_step_2/rng.json",
      "checkpoints/global_step_2/actor/state.bin",
    ]);
  });

  it.each([
    ["its own", "own", [2, 3]],
    ["nothing, and begins anew", "none", [1, 2, 3]],
  ])("are not used if they are damaged, with a warning: the run goes on from %s", async (_, disk, steps) => {
    const hub = new LocalHub();
    await trainOn(hub, `${disk}-first`, { stopAfter: 1 });
    if (disk === "own") cpSync(join(folder, `${disk}-first`), join(folder, disk), { recursive: true });
    await trainOn(hub, `${disk}-first`, { stopAfter: 2 });
    const { files } = await listStored(hub);
    const state = files.find(({ name }) => name.endsWith("state.bin"))!.parts[0]!;
    hub.blobs.entries.get(state)![100]! ^= 1;
    expect(await trainOn(hub, disk)).toEqual({ ...plain, steps });
    expect(texts("warning").join("\n")).toMatch(/the checkpoint of step 2 on the bus cannot be used[\s\S]*is damaged/);
    expect(readdirSync(join(folder, disk, "tests"))).toEqual(["shared run"]);
    // The next coordinator finds a good one.
    expect(await trainOn(hub, `${disk}-last`)).toMatchObject({ adapter: plain.adapter, steps: [] });
  });

  it("that the bus cannot keep are a warning, and the training goes on", async () => {
    const ample = new LocalHub();
    await trainOn(ample, "ample", { stopAfter: 1 });
    const { files } = await listStored(ample);
    const sizes = files.flatMap(({ parts }) => parts).map((sha) => ample.blobs.entries.get(sha)!.length);
    const total = sizes.reduce((sum, size) => sum + size);
    for (const [disk, bound, reason] of [
      ["narrow", total - 1, "does not fit among the bus's blobs"],
      ["tiny", Math.max(...sizes) - 1, "is too large"],
    ] as const) {
      events = [];
      const hub = new LocalHub({}, bound);
      expect(await trainOn(hub, disk)).toEqual(plain);
      const told = texts("warning").filter((text) => /the checkpoint of step \d is not on the bus/.test(text));
      expect(told).toHaveLength(STEPS);
      expect(told[0]).toContain(reason);
      expect(await readPointer(hub)).toBeUndefined();
    }
  });

  it("of a coordinator that lost the lead are not stored", async () => {
    const hub = new LocalHub();
    const bus = openLocalBus({ hub });
    const leader = new Leader(bus);
    const lead = await leader.lead("first");
    await bus.nameCheckpoint({ run: "r", term: leader.term + 1, step: 5, manifest: "a".repeat(64) });
    const checkpoint = { run: "r", step: 6, folder, files: ["rows.jsonl"] };
    await expect(storeCheckpoint(bus, leader, checkpoint)).rejects.toMatchObject({ code: "cluster/stale-checkpoint" });
    expect(hub.blobs.entries.size).toBe(0);
    await lead.release();
    await expect(storeCheckpoint(bus, leader, checkpoint)).rejects.toMatchObject({ code: "cluster/lease-lost" });
    await bus.close();
  });
});
