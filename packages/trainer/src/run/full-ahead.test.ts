import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { quantizeModel } from "@cria/engine";
import { type DumpLine, readDump } from "@cria/records";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openReplay } from "../replay/open-replay.js";
import { makeWaitingTask } from "../testing/waiting-task.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";

const folder = mkdtempSync(join(tmpdir(), "cria-full-ahead-"));
const model = join(folder, "model.gguf");
const BATCH = 4;
const STEPS = 3;

const options = (name: string, partialRollout: TrainOptions["partialRollout"]): TrainOptions => ({
  model,
  lora: null,
  task: makeWaitingTask({ steps: STEPS, batchSize: BATCH }),
  n: 2,
  steps: STEPS,
  batchSize: BATCH,
  learningRate: 1e-4,
  lag: 1,
  partialRollout,
  config: { data: { shuffle: false } },
  save: { every: 1, keep: 10 },
  threads: 1,
  folder,
  name,
});

const versions = ({ turns }: DumpLine) =>
  turns.filter(({ role }) => role === "assistant").map(({ policy_version }) => policy_version);

async function readLines(run: string, step: number): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(run, "rollouts", `${step}.jsonl`))) lines.push(line);
  return lines;
}

beforeAll(async () => {
  const input = fileURLToPath(new URL("../../../../models/cria-tiny.gguf", import.meta.url));
  await quantizeModel({ input, output: model, type: "F32" });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("conversations of a training of all weights with a lag", () => {
  it.each(["switch", "switch_keep_kv"] as const)(
    "go on under newer weights with partial_rollout %s, and are held again to equal bits",
    async (mode) => {
      const made = await train(options(mode, mode));
      const lines = await readLines(made.folder, 2);
      expect(lines.every((line) => versions(line)[0] === 1)).toBe(true);
      const switched = lines.filter((line) => versions(line)[1] === 2);
      expect(switched.length).toBeGreaterThan(0);
      const replay = await openReplay(made.folder, { train: options(mode, mode) });
      try {
        expect((await replay.replay(lines)).map(({ difference }) => difference)).toEqual(lines.map(() => null));
      } finally {
        await replay.close();
      }
    },
  );

  it("are held again to equal bits, by the version that sampled the step, through steps trained again", async () => {
    const made = await train(options("carried", "carry_on"));
    rmSync(join(made.folder, "checkpoints", "global_step_2"), { recursive: true });
    const replay = await openReplay(made.folder, { train: options("carried", "carry_on") });
    try {
      // Step 3 was sampled after one update, the others by the policy of the start.
      for (const step of [3, 2, 1]) {
        const lines = await readLines(made.folder, step);
        expect((await replay.replay(lines)).map(({ difference }) => difference)).toEqual(lines.map(() => null));
      }
    } finally {
      await replay.close();
    }
  });
});
