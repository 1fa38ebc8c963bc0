import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trainConfigSchema } from "../packages/trainer/src/config/train-config.js";
import { describePrebuild } from "../scripts/pack.mjs";
import { readSnippets } from "./snippets.js";

const root = join(import.meta.dirname, "..");
mkdirSync(join(import.meta.dirname, "build"), { recursive: true });
const folder = mkdtempSync(join(import.meta.dirname, "build", "readme-"));
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

beforeAll(() => {
  // The result of `npm init -y` and `npm install cria`: a package of CommonJS, with `cria` from the root, and its
  // dependencies.
  writeFileSync(join(folder, "package.json"), '{ "name": "mine", "version": "1.0.0", "type": "commonjs" }');
  symlinkSync(join(root, "apps", "trainer", "node_modules"), join(folder, "node_modules"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The blocks of a page that are programs: those whose first line names a file. */
function readPrograms(page: string): Map<string, string> {
  const blocks = readSnippets(readFileSync(join(root, page), "utf8")).filter(({ language }) => language === "ts");
  return new Map(blocks.flatMap(({ name, text }) => (name === null ? [] : [[name, text]])));
}

/**
 * Writes a page's programs unchanged except for replacements.
 * @returns a function that runs one and returns its lines.
 */
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
    /** Runs one as `npx tsx` does, on the built packages: `npm test` builds first. @returns the lines that it prints. */
    async run(name: string): Promise<string[]> {
      const { stdout } = await promisify(execFile)(process.execPath, ["--import", tsx, join(place, name)], {
        cwd: folder,
      });
      return stdout.trimEnd().split("\n");
    },
  };
}

describe("README.md", () => {
  const page = writePrograms("README.md", {
    "train.mts": [
      ["steps: 30", "steps: 2"],
      ["seed: 1", "seed: 1, threads: 1"],
    ],
    "loop.mts": [
      ["steps: 30", "steps: 2"],
      ["248, seed: 1", "248, seed: 1, threads: 1"],
    ],
  });

  it("shows one call and an own loop, before its 150th line", () => {
    expect(page.names).toEqual(["task.mts", "train.mts", "loop.mts"]);
    expect(readPrograms("README.md").get("train.mts")).toMatch(/console\.log\(.*problems\.map/);
    expect(readFileSync(join(root, "README.md"), "utf8").trimEnd().split("\n").length).toBeLessThan(150);
  });

  it("says of its numbers what the defaults are: rewards are of sampled conversations, success of greedy ones", () => {
    const train = readPrograms("README.md").get("train.mts")!;
    expect(train).toMatch(/reward \$\{reward\}.*\/\/ sampled/);
    expect(train).toMatch(/\bbefore, after\b.*\/\/ greedy/);
    const config = { actor_rollout_ref: { model: { path: "model.gguf" } }, data: { train_files: "rows.jsonl" } };
    const { temperature, val_kwargs } = trainConfigSchema.parse(config).actor_rollout_ref.rollout;
    expect({ temperature, isValidationSampled: val_kwargs.do_sample }).toEqual({
      temperature: 1,
      isValidationSampled: false,
    });
  });

  it("trains a toy, and names where other models come from", () => {
    expect(statSync(join(root, "models", "cria-tiny.gguf")).size).toBeLessThan(20e6);
    expect(readPrograms("README.md").get("train.mts")).toMatch(/model: embeddedPolicy, \/\/ .*"\w+\.gguf".*"hf:[^"]+"/);
  });

  it("installs on Linux x64 by a ready-made addon, which has no install script", () => {
    expect(readFileSync(join(root, "README.md"), "utf8")).toMatch(/^npm install cria .*Linux x64.*install script/m);
    expect(describePrebuild("linux-x64")).not.toHaveProperty("scripts");
  });

  let rewards: string[] = [];

  it("one call: reports steps, and what came of them", async () => {
    const printed = await page.run("train.mts");
    rewards = printed.slice(0, -1);
    expect(rewards).toEqual([
      expect.stringMatching(/^step 1: reward 0\.\d+$/),
      expect.stringMatching(/^step 2: reward 0\.\d+$/),
    ]);
    const [, before, after, adapter] = /^held-out success (\S+) -> (\S+): (.*)$/.exec(printed.at(-1)!)!;
    for (const success of [before, after]) expect(Number(success) * 32).toSatisfy(Number.isInteger);
    expect(existsSync(join(folder, adapter!))).toBe(true);
  });

  it("an own loop: gets the rewards of the one call, and saves the same adapter", async () => {
    expect(await page.run("loop.mts")).toEqual(rewards);
    const ofCall = readFileSync(join(folder, "runs", "cria", "default", "adapter.gguf"));
    expect(readFileSync(join(folder, "adapter.gguf")).equals(ofCall)).toBe(true);
  });
});

describe("packages/engine/README.md", () => {
  const page = writePrograms("packages/engine/README.md", {
    "engine.mts": [["lora: { rank: 8 }", "lora: { rank: 8 }, threads: 1"]],
  });

  it("generates, and scores what it sampled", async () => {
    const line = (await page.run("engine.mts")).join("\n");
    const logprobs = /Float32Array\(\d+\) \[([^\]]*)\]$/.exec(line)![1]!.split(",").map(Number);
    expect(logprobs.length).toBeGreaterThan(2);
    for (const logprob of logprobs) expect(logprob).toBeLessThanOrEqual(0);
  });
});

describe("packages/serve/README.md", () => {
  const page = writePrograms("packages/serve/README.md", {
    "serve.mts": [["maxSequences: 8", "maxSequences: 8, threads: 1"]],
  });

  it("serves a model, and asks it", async () => {
    expect((await page.run("serve.mts")).join("\n")).toMatch(/\S.* \d+ [0-9a-f]+$/s);
  });
});

describe("packages/tools/README.md", () => {
  const page = writePrograms("packages/tools/README.md", {});

  it("makes a tool, and calls it", async () => {
    expect(await page.run("call.mts")).toEqual(["42"]);
  });
});

describe("packages/trainer/README.md", () => {
  const page = writePrograms("packages/trainer/README.md", {
    "train.mts": [["seed: 1,", "seed: 1, threads: 1,"]],
    "loop.mts": [["248, seed: 1", "248, seed: 1, threads: 1"]],
  });

  it("has a program for each level", () => {
    expect(page.names).toEqual(["task.mts", "train.mts", "loop.mts", "config.mts"]);
  });

  it("one call: validates, is evaluated, stops, and goes on where it stopped", async () => {
    const printed = await page.run("train.mts");
    const find = (pattern: RegExp) => printed.flatMap((line) => pattern.exec(line)?.[1] ?? []);
    const steps = find(/^step (\d): reward [\d.]+, gradient [\d.]+$/).map(Number);
    const resumed = find(/^resumed: step (\d)$/).map(Number);
    expect([...steps, ...resumed]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(resumed.length).toBeGreaterThan(0);
    expect(find(/^validated after step (\d): success [01](?:\.\d+)?$/)).toEqual(
      expect.arrayContaining(["0", "2", "8"]),
    );
    expect(find(/^evaluated: success ([01](?:\.\d+)?)$/)).toHaveLength(1);
    expect(existsSync(join(folder, find(/^success [\d.]+ -> [\d.]+: (.*)$/)[0]!))).toBe(true);
  });

  it("an own loop: trains, generates, saves and exports", async () => {
    const printed = await page.run("loop.mts");
    expect(printed.filter((line) => /^([01] ){3}[01]$/.test(line))).toHaveLength(8);
    expect(printed.filter((line) => /^gradient [\d.]+$/.test(line)).length).toBeGreaterThan(1);
    expect(printed.filter((line) => !/^[01] |^gradient /.test(line)).join("")).toMatch(/\w/);
    for (const file of ["adapter.gguf", "model.gguf"])
      expect(readFileSync(join(folder, file)).toString("latin1", 0, 4)).toBe("GGUF");
  });

  it("configs: options as a file, and back", async () => {
    const [printed] = await page.run("config.mts");
    expect(printed).toBe("steps: 20");
    expect(JSON.parse(readFileSync(join(folder, "config.yaml"), "utf8"))).toMatchObject({
      actor_rollout_ref: { actor: { policy_loss: { loss_mode: "gspo" }, clip_ratio_low: 0.05 } },
      trainer: { total_training_steps: 10 },
    });
  });
});

describe("packages/ai-sdk/README.md", () => {
  const page = writePrograms("packages/ai-sdk/README.md", { "answer.mts": [["seed: 1", "seed: 1, threads: 1"]] });

  it("answers by the AI SDK, and says what was sampled", async () => {
    const [text, ...said] = (await page.run("answer.mts")).join("\n").split(/^(?=\[$)/m);
    expect(text!.trim()).not.toBe("");
    const steps = said.join("").match(/tokenIds: \[/g) ?? [];
    expect(steps.length).toBeGreaterThan(0);
    expect(said.join("").match(/logprobs: \[/g)).toHaveLength(steps.length);
  });
});
