import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

// Most scripts run at night, and none is compiled: a file that moved would break one unseen.
it("the files and exports that scripts import exist", async () => {
  const scripts = execFileSync("git", ["ls-files", "*.mjs"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  expect(scripts.length).toBeGreaterThan(50);
  const { errors } = await build({
    absWorkingDir: root,
    entryPoints: scripts,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    outdir: "unused",
    write: false,
    logLevel: "silent",
  }).catch((error) => error);
  expect(errors.map(({ text, location }: (typeof errors)[number]) => `${location?.file}: ${text}`)).toEqual([]);
});
