import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, describe, expect, it } from "vitest";

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
