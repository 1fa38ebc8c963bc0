import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

// Beside the compiler that built the addon: the oldest clang that is promised, and the one for arm64 Linux. Syntax and
// warnings only. Installed by scripts/install-test-tools.sh; without them a machine of one's own skips this, CI does not.
const root = join(import.meta.dirname, "..");
const compilers = ["clang++", "aarch64-linux-gnu-g++"];
const isThere = (compiler: string) => spawnSync(compiler, ["--version"]).status === 0;

describe("native/src compiles without a warning", () => {
  for (const compiler of compilers) {
    const skipped = !process.env.CI && !isThere(compiler);
    const title = skipped ? `${compiler}: not installed, see scripts/install-test-tools.sh` : compiler;
    it.skipIf(skipped)(title, { timeout: 300_000 }, () => {
      const script = join(root, "scripts", "check-compilers.mjs");
      const { stdout, stderr } = spawnSync(process.execPath, [script, compiler], { encoding: "utf8" });
      expect(stderr).toBe("");
      expect(stdout).toMatch(/: [3-9]\d files, 0 with errors or warnings\n$/);
    });
  }
});
