import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
const folder = mkdtempSync(join(tmpdir(), "cria-leftover-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function computeEverything(preloaded: string): Promise<Record<string, string>> {
  const program = join(import.meta.dirname, "testing", "compute-everything.ts");
  const args = ["--conditions=cria-source", "--import", "tsx", program];
  const env = { ...process.env, LD_PRELOAD: preloaded };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
  return JSON.parse(stdout);
}

describe.runIf(process.platform === "linux")("memory that another program left", () => {
  it("changes no bit of what the engine computes", async () => {
    const poison = join(folder, "poison.so");
    const source = join(root, "native", "test", "poison_memory.c");
    execFileSync(process.env.CC ?? "cc", ["-O2", "-shared", "-fPIC", source, "-o", poison]);
    const [clean, poisoned] = await Promise.all([computeEverything(""), computeEverything(poison)]);
    expect(Object.keys(clean).length).toBeGreaterThan(40);
    expect(poisoned).toEqual(clean);
  });
});
