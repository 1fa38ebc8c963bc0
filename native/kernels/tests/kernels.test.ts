import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildKernels, findNvcc } from "../../scripts/build-kernels.mjs";
import { buildEmulation } from "./build-emulation.mjs";

const nvcc = findNvcc();
const nativeRoot = join(import.meta.dirname, "..", "..");

describe("kernels on the CPU, by the emulation", () => {
  it("agree with their references, in whatever order threads run", async () => {
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

const title = nvcc
  ? "kernels for GPUs"
  : "kernels for GPUs (skipped: no nvcc of CUDA 13 in CUDA_PATH, PATH, /usr/local/cuda)";
describe.skipIf(!nvcc)(title, () => {
  it("all compile for sm_80 and sm_90, and export what the header declares", async () => {
    // Reused when the addon's build has made it already.
    const { library, said } = await buildKernels();
    expect(said ?? "").not.toContain("did not compile");
    const text = readFileSync(library!, "latin1");
    for (const architecture of ["80", "90"]) expect(text).toContain(`-arch sm_${architecture}`);
    const header = readFileSync(join(nativeRoot, "kernels", "cria_kernels.h"), "utf8");
    const declared = [...header.matchAll(/^(?:const char \*|int32_t) ?(cria_\w+)\(/gm)].map(([, name]) => name!);
    expect(declared.length).toBe(10);
    for (const name of declared) expect(text).toContain(`${name}\0`);
  });
});
