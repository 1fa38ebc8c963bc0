import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { peakMemory } from "./peak-memory.js";

it("is that of this process, and not of the one that started it", () => {
  const held = Buffer.alloc(400e6, 1);
  expect(peakMemory()).toBeGreaterThan(held.length);
  const source = join(import.meta.dirname, "peak-memory.ts");
  const script = `${readFileSync(source, "utf8").replace("(): number", "()").replace("export ", "")}; console.log(peakMemory());`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(Number(stdout)).toBeGreaterThan(20e6);
  expect(Number(stdout)).toBeLessThan(300e6);
});
