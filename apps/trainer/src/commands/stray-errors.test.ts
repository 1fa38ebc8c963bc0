import { spawn } from "node:child_process";
import { type EventEmitter, once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { runHere } from "../testing/run-here.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

// The built command line as users run it: `npm test` builds first.
const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");

/** Trains with a reward that misbehaves in its 14th call, which is in step 2: three rows have four samples each. */
async function trainWith(misbehave: string) {
  const reward = `
    globalThis.calls = (globalThis.calls ?? 0) + 1;
    if (globalThis.calls === 14) { ${misbehave} }
    return text.length;`;
  const { folder } = await writeTinyRun(models, {
    reward,
    trainer: { total_training_steps: 1_000_000, val_before_train: false },
  });
  const args = [bin, "train", join(folder, "config.yaml"), "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  const run = join(folder, "cria", "default");
  const end = join(run, "end.json");
  return {
    code,
    stderr,
    checkpoints: existsSync(join(run, "checkpoints")) ? readdirSync(join(run, "checkpoints")) : [],
    end: existsSync(end) ? (JSON.parse(readFileSync(end, "utf8")) as { status: string; error: string | null }) : null,
  };
}

describe("cria train, when an agent", () => {
  const output = captureOutput();
  // Those of the test runner would take the errors for its own.
  const events: EventEmitter = process;
  const others = ["unhandledRejection", "uncaughtException"].map((name) => ({
    name,
    listeners: events.listeners(name),
  }));
  beforeEach(() => {
    for (const { name } of others) events.removeAllListeners(name);
  });
  afterEach(() => {
    for (const { name, listeners } of others) for (const each of listeners) events.on(name, each as () => void);
  });

  /** Trains one step with an agent that misbehaves in the second of twelve episodes, before it goes on. */
  async function trainAgent(misbehave: string) {
    const { folder } = await writeTinyRun(models, {
      rollout: { agent: { default_agent_loop: "mine", agent_loop_config_path: "mine.yaml" } },
      customRewardFunction: { path: null },
      trainer: { total_training_steps: 1, val_before_train: false },
    });
    writeFileSync(join(folder, "mine.yaml"), "- { name: mine, agent: ./mine.mjs#agent }\n");
    writeFileSync(
      join(folder, "mine.mjs"),
      `let episodes = 0;
      export async function agent({ row, session }) {
        if (episodes++ === 1) { ${misbehave} }
        await new Promise((resolve) => setTimeout(resolve));
        return (await session.complete({ messages: row.prompt, maxTokens: 4 })).message.content.length;
      }`,
    );
    await runHere(folder, ["train", "config.yaml", "--json"]);
    const { metrics } = JSON.parse(output.stdout) as { metrics: Record<string, number> };
    return metrics;
  }

  for (const [name, misbehave] of [
    [
      "forgets a promise that rejects",
      `for (const text of ["forgotten", "too"]) void Promise.reject(new Error(text));`,
    ],
    ["throws in a timer", `setTimeout(() => { throw new Error("forgotten"); });`],
  ] as const) {
    it(`${name}: fails its episode, and goes on`, async () => {
      expect(await trainAgent(misbehave)).toMatchObject({ "rollout/failed": 1 });
      expect(process.exitCode ?? 0).toBe(0);
      expect(output.stderr).toContain("forgotten");
    });
  }
});

describe("cria train, when the user's code", () => {
  for (const [name, misbehave] of [
    ["forgets a promise that rejects", `Promise.reject(new Error("forgotten"));`],
    ["rejects with what is no error", `Promise.reject({ toString() { throw 1; } });`],
    ["throws in a timer", `setTimeout(() => { throw new Error("late"); });`],
  ] as const) {
    it(`${name}: names step and row, saves what is done, and says how to go on`, async () => {
      const { code, stderr, checkpoints, end } = await trainWith(misbehave);
      expect(code).toBe(1);
      expect(stderr).toMatch(/error row [012] \(.*rows\.jsonl, line [123].*\), sample [0-3] of step 2: /);
      const step = Number(/stopped after step (\d+) of/.exec(stderr)?.[1]);
      expect(step).toBeGreaterThanOrEqual(1);
      expect(checkpoints).toContain(`global_step_${step}`);
      expect(stderr).toMatch(/go on: cria train \S+config\.yaml --json\n/);
      expect(end).toMatchObject({ status: "failed", error: expect.stringMatching(/of step 2/) });
    });
  }

  it("ends the process: fails, and names the line", async () => {
    const { code, stderr } = await trainWith("process.exit(0);");
    expect(code).toBe(1);
    expect(stderr).toMatch(/by: process\.exit, called at .*reward\.mjs/);
    expect(stderr).toMatch(/go on: cria train/);
  });
});
