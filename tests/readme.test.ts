import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";

const root = join(import.meta.dirname, "..");
mkdirSync(join(import.meta.dirname, "build"), { recursive: true });
const folder = mkdtempSync(join(import.meta.dirname, "build", "readme-"));
const home = process.cwd();

beforeAll(() => {
  // What `npm install cria` gives: `cria` itself, from the root, and what it depends on.
  symlinkSync(join(root, "apps", "trainer", "node_modules"), join(folder, "node_modules"));
  process.chdir(folder);
});
afterAll(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true });
});
afterEach(() => vi.restoreAllMocks());

/** The blocks of a page that are programs: those whose first line names a file. */
function readPrograms(page: string): Map<string, string> {
  const blocks = readFileSync(join(root, page), "utf8").matchAll(/^```ts\n(\/\/ ([\w-]+\.ts)\b[\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, text, name]) => [name!, text!]));
}

/** Writes a page's programs as they are printed, but for replacements. @returns what runs one and gives its lines. */
function writePrograms(page: string, cuts: Record<string, readonly [printed: string, shorter: string][]>) {
  const place = join(folder, page.replace(/\W/g, "-"));
  mkdirSync(place);
  const programs = readPrograms(page);
  for (const [name, text] of programs) {
    const short = (cuts[name] ?? []).reduce((whole, [printed, shorter]) => {
      expect(whole.split(printed), `${page}, ${name}: ${printed}`).toHaveLength(2);
      return whole.replace(printed, shorter);
    }, text);
    writeFileSync(join(place, name), short);
  }
  return {
    names: [...programs.keys()],
    async run(name: string): Promise<string[]> {
      const printed: string[] = [];
      vi.spyOn(console, "log").mockImplementation((...values) => void printed.push(values.join(" ")));
      await import(join(place, name));
      return printed;
    },
  };
}

const oneThread = ["seed: 1", "seed: 1, threads: 1"] as const;

describe("README.md", () => {
  const page = writePrograms("README.md", {
    "train.ts": [["steps: 30", "steps: 2"], [...oneThread]],
    "loop.ts": [
      ["steps: 30", "steps: 2"],
      ["248, seed: 1", "248, seed: 1, threads: 1"],
    ],
    "engine.ts": [["lora: { rank: 8 }", "lora: { rank: 8 }, threads: 1"]],
  });

  it("shows the three levels, before its 150th line", () => {
    expect(page.names).toEqual(["task.ts", "train.ts", "loop.ts", "engine.ts"]);
    expect(readFileSync(join(root, "README.md"), "utf8").split("\n").length).toBeLessThanOrEqual(150);
  });

  let rewards: string[] = [];

  it("one call: reports steps, and what came of them", async () => {
    const printed = await page.run("train.ts");
    rewards = printed.slice(0, -1);
    expect(rewards).toEqual([
      expect.stringMatching(/^step 1: reward 0\.\d+$/),
      expect.stringMatching(/^step 2: reward 0\.\d+$/),
    ]);
    const [, before, after, adapter] = /^held-out success (\S+) -> (\S+): (.*)$/.exec(printed.at(-1)!)!;
    for (const success of [before, after]) expect(Number(success) * 32).toSatisfy(Number.isInteger);
    expect(existsSync(adapter!)).toBe(true);
  });

  it("an own loop: gets the rewards of the one call, and saves the same adapter", async () => {
    expect(await page.run("loop.ts")).toEqual(rewards);
    const ofCall = readFileSync(join(folder, "runs", "cria", "default", "adapter.gguf"));
    expect(readFileSync("adapter.gguf").equals(ofCall)).toBe(true);
  });

  it("the engine: generates, and scores what it sampled", async () => {
    const [line] = await page.run("engine.ts");
    const logprobs = /(-[\d.e-]+(,-?[\d.e-]+)*)$/.exec(line!)![1]!.split(",").map(Number);
    expect(logprobs.length).toBeGreaterThan(3);
    for (const logprob of logprobs) expect(logprob).toBeLessThanOrEqual(0);
  });
});
