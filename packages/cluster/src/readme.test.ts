import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";

const root = join(import.meta.dirname, "..");
mkdirSync(join(root, "build"), { recursive: true });
const folder = mkdtempSync(join(root, "build", "readme-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("README.md: the program runs", async () => {
  const [, program] = /^```ts\n(\/\/ jobs\.mts\n[\s\S]*?)^```$/m.exec(readFileSync(join(root, "README.md"), "utf8"))!;
  writeFileSync(join(folder, "jobs.mts"), program!);
  const print = vi.spyOn(console, "log").mockImplementation(() => {});
  await import(join(folder, "jobs.mts"));
  expect(print).toHaveBeenCalledExactlyOnceWith("1 4 9");
});
