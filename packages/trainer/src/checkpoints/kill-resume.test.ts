import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { amount } from "@cria/core/testing";
import { expect, it } from "vitest";

// The built command line, as a user runs it: `npm test` builds first. `scripts/nightly` does it 50 times.
const batches = [
  ["train,train-ahead,train-replay", amount(4, 15)],
  ["sft,sft-full", amount(2, 6)],
  ["train-roles", amount(2, 8)],
  ["train-rae,train-trees,train-guided,train-demonstrations", amount(0, 16)],
] as const;
for (const [kinds, kills] of batches.filter(([, some]) => some > 0)) {
  it(`${kinds}: killed ${kills} times at random instants, a run goes on as if it had never stopped`, async () => {
    const script = join(import.meta.dirname, "..", "..", "..", "..", "scripts", "nightly", "kill-resume.mjs");
    const args = [script, "--kills", String(kills), "--steps", "12", "--kinds", kinds];
    // Beside the event loop: vitest ends a run whose process does not answer for a minute.
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const [status] = await once(child, "close");
    expect(stderr).toBe("");
    const result = JSON.parse(stdout) as { kills: number; failures: unknown[]; seed: number };
    expect(result.failures, `seed ${result.seed}`).toEqual([]);
    expect(result.kills).toBe(kills);
    expect(status).toBe(0);
  });
}
