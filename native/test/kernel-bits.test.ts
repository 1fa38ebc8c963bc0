import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { loadAddon } from "../index.mjs";

// Runs kernel_bits.cc with every kernel that this CPU supports. Where it lacks AVX-512, the same C++ runs with AVX2
// instructions, and kernel-code.test.ts reads the compiler's output for AVX-512.
const build = join(import.meta.dirname, "..", "build");
const { runtimeInfo } = loadAddon() as { runtimeInfo(): { usableCpuKernels: string[] } };
const kernels = runtimeInfo().usableCpuKernels;

interface Line {
  name: string;
  kernel: string;
  /** Digest of all results. */
  digest: string;
  /** Description of a row whose bits depend on other rows; empty when there is none. */
  problem: string;
}

function run(command: string, args: string[], env: Record<string, string> = {}): string {
  const { error, status, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (error || status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? `${stdout}${stderr}`}`);
  return stdout;
}

const results = new Map<string, Line[]>();

describe(`kernels ${kernels.join(", ")}`, () => {
  beforeAll(() => {
    run("cmake", ["--build", build, "--target", "kernel_bits"]);
    for (const kernel of kernels) {
      const lines = run(join(build, "kernel_bits"), [], { CRIA_CPU_KERNEL: kernel });
      results.set(
        kernel,
        lines
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as Line),
      );
    }
  });

  for (const kernel of kernels) {
    it(`${kernel}: a row's bits depend on no other row and on no number of threads`, () => {
      const lines = results.get(kernel)!;
      expect(lines.filter((line) => line.kernel !== kernel || line.problem !== "")).toEqual([]);
      const types = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_K", "q5_K", "q6_K"];
      for (const type of types) expect(lines.map((line) => line.name)).toContain(`backward ${type}`);
      const count = (start: string) => lines.filter((line) => line.name.startsWith(start)).length;
      for (const type of ["f32", "f16", "bf16"]) expect(count(`forward ${type} `)).toBeGreaterThan(2);
      const stored = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4", "q4_K", "q5_K", "q6_K"];
      for (const type of stored) expect(count(`stored ${type} `)).toBe(kernel === "portable" ? 0 : 3);
    });
  }

  it.skipIf(kernels.length < 2)("agree with each other as docs/determinism.md says", () => {
    const digests = (kernel: string) => new Map(results.get(kernel)!.map((line) => [line.name, line.digest]));
    const [best, ...others] = kernels.map(digests);
    for (const [i, other] of others.entries()) {
      const equal = [...other!].filter(([name, digest]) => best!.get(name) === digest).map(([name]) => name);
      // For our code AVX2 and AVX-512 are one class; portable code for x86 cannot fuse, and is another.
      if (process.arch === "x64") expect(equal).toEqual(kernels[i + 1] === "portable" ? [] : [...other!.keys()]);
    }
  });
});
