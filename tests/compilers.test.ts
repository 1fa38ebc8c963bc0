import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

// Besides the compiler that built the addon: the oldest supported clang, and those for arm64 Linux and for Windows. Syntax
// and warnings only. Installed by scripts/install-test-tools.sh; without them developers' machines skip this, CI does not.
const script = join(import.meta.dirname, "..", "scripts", "check-compilers.mjs");
const compilers: Record<string, string[]> = {
  "clang++": [],
  // The parts that depend on the processor; scripts/nightly/arm64.mjs builds the rest too.
  "aarch64-linux-gnu-g++": ["--only", "cpu,math,infer,threads"],
  "x86_64-w64-mingw32-g++-posix": [],
};
const isThere = (compiler: string) => spawnSync(compiler, ["--version"]).status === 0;

describe("native/src compiles without a warning", () => {
  for (const [compiler, options] of Object.entries(compilers)) {
    const skipped = !process.env.CI && !isThere(compiler);
    const title = skipped ? `${compiler}: not installed, see scripts/install-test-tools.sh` : compiler;
    // Recorded compilations are not repeated; otherwise they take some 40 s of one core, and minutes on a busy machine.
    // Not synchronously: vitest must be answered meanwhile.
    it.skipIf(skipped)(title, { timeout: 600_000 }, async () => {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [
        script,
        "--new",
        ...options,
        compiler,
      ]).catch((error) => error);
      expect(stderr).toBe("");
      expect(stdout).toMatch(/: ([1-9]\d+ files, 0 with errors or warnings|nothing new since .*)\n$/);
    });
  }
});

const mistakes = join(import.meta.dirname, "..", "native", "test", "thread_mistakes.cc");
const include = join(import.meta.dirname, "..", "native", "include");
const noClang = !process.env.CI && !isThere("clang++");

it.skipIf(noClang)("clang names each mistake with locks, and nothing else", () => {
  const args = ["-std=gnu++17", "-Wthread-safety", "-Wthread-safety-beta", `-I${include}`, "-fsyntax-only", mistakes];
  const { stderr } = spawnSync("clang++", args, { encoding: "utf8" });
  const found = [...stderr.matchAll(/\.cc:(\d+):\d+: warning: (.*) \[-Wthread-safety/g)].map(([, line, text]) => ({
    line: Number(line),
    text,
  }));
  const expected = readFileSync(mistakes, "utf8")
    .split("\n")
    .flatMap((text, i) => {
      const wrong = / {2}\/\/ wrong: (.*)$/.exec(text)?.[1];
      return wrong ? [{ line: i + 1, text: expect.stringContaining(wrong) }] : [];
    });
  expect(expected.length).toBeGreaterThan(5);
  expect(found).toEqual(expected);
});
