import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runSoak } from "./testing/index.js";

const policy = fileURLToPath(new URL("../../../models/cria-tiny.gguf", import.meta.url));

describe("mixed load", () => {
  it("no wrong logprob, nothing left over, no unhandled rejection", async () => {
    const report = await runSoak({ path: policy, seconds: 5, epochSeconds: 1, replays: 15, maxGrowth: Infinity });
    console.log(
      JSON.stringify(
        { ...report, failures: report.failures.map((f) => f.slice(0, 1500)), memory: report.memory.trend },
        null,
        1,
      ),
    );
    expect(report.failures).toEqual([]);
  });
});
