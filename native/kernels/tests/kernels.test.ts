import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { findNvcc, kernelArguments } from "../../scripts/build-kernels.mjs";
import { buildEmulation, kernelSources } from "./build-emulation.mjs";

const run = promisify(execFile);
const nvcc = findNvcc();

describe("kernels on the CPU, by the emulation", () => {
  it("agree with their references, in whatever order threads run", { timeout: 240_000 }, async () => {
    const { check } = await buildEmulation();
    const results: string[] = [];
    for (const order of ["forward", "reverse"]) {
      const { status, stdout, stderr } = spawnSync(check, [], {
        encoding: "utf8",
        env: { ...process.env, CRIA_EMULATION_ORDER: order },
      });
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { ok?: boolean });
      expect(lines.filter(({ ok }) => ok !== true)).toEqual([]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(lines.length).toBeGreaterThan(30);
      results.push(stdout);
    }
    expect(results[0]).toBe(results[1]);
  });
});

describe(
  nvcc
    ? "kernels for GPUs"
    : "kernels for GPUs (skipped: no nvcc here; it is looked for in CUDA_PATH, PATH, /usr/local/cuda)",
  () => {
    // The widest one, and the one with the fewest cases; the build of the addon compiles them all.
    const sources = kernelSources.filter((path) => /softmax|attention_forward/.test(path));
    it.skipIf(!nvcc).each(sources.map((path) => [basename(path), path]))(
      "%s compiles for sm_80 and sm_90",
      { timeout: 240_000 },
      async (_, path) => {
        const folder = mkdtempSync(join(tmpdir(), "cria-nvcc-"));
        try {
          const { stderr } = await run(nvcc!, [
            ...kernelArguments(["80", "90"]),
            "-c",
            path!,
            "-o",
            join(folder, "out.o"),
          ]);
          expect(stderr).toBe("");
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      },
    );
  },
);
