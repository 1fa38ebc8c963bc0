import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { quantizeModel } from "@cria/engine";
import { type DumpLine, readDump } from "@cria/records";
import { tool } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { openReplay } from "../replay/open-replay.js";
import { defineTask } from "../task/task.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";

const folder = mkdtempSync(join(tmpdir(), "cria-full-ahead-"));
const model = join(folder, "model.gguf");
const BATCH = 4;
const FIRST = 20;
const STEPS = 3;

/** A calculator whose answers wait until `open` is called, for conversations of the second step. */
function makeCalculator() {
  let open = () => {};
  const opened = new Promise<void>((done) => {
    open = done;
  });
  return tool({
    name: "calculator",
    description: "Computes.",
    inputSchema: z.object({ expression: z.string() }),
    execute: async ({ expression }) => {
      const [a = 0, b = 0] = expression.split("+").map(Number);
      const step = Math.floor((a - FIRST) / BATCH) + 1;
      // The first update is made while the second step's conversations wait.
      if (step >= 3) open();
      if (step === 2) await opened;
      return String(a + b);
    },
  });
}

const options = (name: string, partialRollout: "carry_on" | "switch"): TrainOptions => ({
  model,
  lora: null,
  task: defineTask({
    rows: Array.from({ length: STEPS * BATCH }, (_, i) => ({
      question: `There are ${i + FIRST} marbles in a box and 7 marbles in a bag. How many marbles in total?`,
    })),
    tools: [makeCalculator()],
    reward: ({ answer }) => answer.length % 7,
    maxTurns: 3,
    maxPromptLength: 120,
    maxResponseLength: 128,
  }),
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
  it("go on under newer weights with partial_rollout switch, and are held again to equal bits", async () => {
    const made = await train(options("switched", "switch"));
    const lines = await readLines(made.folder, 2);
    expect(lines.every((line) => versions(line)[0] === 1)).toBe(true);
    const switched = lines.filter((line) => versions(line)[1] === 2);
    expect(switched.length).toBeGreaterThan(0);
    const replay = await openReplay(made.folder, { train: options("switched", "switch") });
    try {
      expect((await replay.replay(lines)).map(({ difference }) => difference)).toEqual(lines.map(() => null));
    } finally {
      await replay.close();
    }
  });

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
