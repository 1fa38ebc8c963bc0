import { describe, expect, it } from "vitest";
import { captureOutput } from "../apps/trainer/src/testing/capture-output.js";
import { runHere } from "../apps/trainer/src/testing/run-here.js";
import { isNightly } from "../packages/core/src/testing/nightly.js";
import {
  compareBits,
  computeBits,
  describePlatform,
  nameRecord,
  ownKernel,
  readRecords,
  usableKernels,
} from "../scripts/check-bits.mjs";

// Rearranged code computes the same: short trainings and a short demo, from the command line to the files; nightly with each
// kernel that this CPU has. A change that means to compute something else records it: node scripts/check-bits.mjs
// --write.
describe("trainings and the demo compute the recorded bits", () => {
  const records = readRecords();
  const output = captureOutput();
  /** In this process, with its kernel: nothing has to be loaded again. */
  const run = async (folder: string, args: string[]) => {
    output.stdout = "";
    await runHere(folder, args);
    expect(process.exitCode, output.stderr).toBeUndefined();
    return output.stdout;
  };
  for (const kernel of usableKernels) {
    const name = nameRecord(kernel);
    const record = records[name];
    if (!record) {
      it.skip(`${name}: nothing is recorded, see node scripts/check-bits.mjs --write`, () => undefined);
      continue;
    }
    if (kernel !== ownKernel && !isNightly) {
      it.skip(`${name}: nightly, as scripts/nightly/tests.mjs does`, () => undefined);
      continue;
    }
    // The whole demo takes minutes: the script's --demo.
    const { platform, demo: _, ...recorded } = record;
    it(name, async () => {
      const libraries = `recorded with ${JSON.stringify(platform)}, computed with ${JSON.stringify(describePlatform())}`;
      expect(compareBits(recorded, await computeBits(kernel, kernel === ownKernel ? { run } : {})), libraries).toEqual(
        [],
      );
    });
  }

  it("a changed bit, a changed metric and a missing one are seen", () => {
    const [record] = Object.values(records);
    const changed = structuredClone(record!);
    changed.lora.sha256 = changed.full.sha256;
    changed.full.metrics["actor/grad_norm"] = "";
    delete changed.lora.metrics["actor/pg_loss"];
    changed.shortDemo.after.greedy += 2 ** -10;
    const { platform: _, ...recorded } = record!;
    expect(compareBits(recorded, changed)).toEqual([
      expect.stringMatching(/^lora sha256: /),
      expect.stringMatching(/^lora metrics actor\/pg_loss: expected \w+, received nothing$/),
      expect.stringMatching(/^full metrics actor\/grad_norm: /),
      expect.stringMatching(/^shortDemo after greedy: /),
    ]);
  });
});
