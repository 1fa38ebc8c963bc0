import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseTool } from "cria";
import { afterEach, describe, expect, it, vi } from "vitest";

const folder = join(import.meta.dirname, "..", "examples");

const run = (name: string, ...args: string[]) => runFile(join(name, `${name}.ts`), ...args);

let runs = 0;

/** Runs an example as `node <file> <args>` would, again too, and returns its output. */
async function runFile(file: string, ...args: string[]): Promise<string> {
  const printed: string[] = [];
  vi.spyOn(console, "log").mockImplementation((line) => void printed.push(`${line}\n`));
  vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0);
  vi.spyOn(process, "argv", "get").mockReturnValue([process.execPath, file, ...args]);
  // By another name each time: a module is evaluated once.
  await import(`${join(folder, file)}?run=${++runs}`);
  return printed.join("");
}

afterEach(() => vi.restoreAllMocks());

describe("examples", () => {
  it("generate: counts and streams", async () => {
    const printed = await run("generate");
    const text = printed.slice(0, printed.lastIndexOf("\n", printed.length - 2));
    expect(text.length).toBeGreaterThan(0);
    expect(printed).toContain(`\n${text.length} characters, `);
    expect(printed).toMatch(/, (stop|length)\n$/);
  });

  it("chat-tools: the model calls, the tool answers, the model uses the answer", async () => {
    expect(await run("chat-tools")).toMatch(/"86-58"[\s\S]*\ntool: 28\nassistant: #### 28\n$/);
  });

  it("fork: answers share the prompt", async () => {
    const printed = await run("fork");
    const shared = [...printed.matchAll(/\((\d+) tokens shared, (\d+) evaluated\)/g)];
    const length = /trunk: (\d+) tokens/.exec(printed)![1];
    expect(shared.map(([, reused, evaluated]) => [reused, evaluated])).toEqual(Array(4).fill([length, "0"]));
    expect(new Set(printed.match(/^\d: ".*?"/gm)!.map((line) => line.slice(3))).size).toBeGreaterThan(1);
  });

  it("score: a sensible answer is likelier than nonsense", async () => {
    const logprobs = [...(await run("score")).matchAll(/logprob (-[\d.]+)/g)].map((match) => Number(match[1]));
    expect(logprobs).toHaveLength(3);
    expect(logprobs[0]).toBeGreaterThan(logprobs[1]! + 10);
    expect(logprobs[1]).toBeGreaterThan(logprobs[2]!);
  });

  it("own-tool: its answers reach the model, its rewards the trajectory", async () => {
    const conversations = (await run("own-tool")).trim().split("\n\n");
    expect(conversations).toHaveLength(8);
    const called = conversations.filter((text) => text.includes("\ntool: "));
    expect(called.length).toBeGreaterThan(0);
    for (const text of conversations)
      expect(text).toMatch(called.includes(text) ? /-> reward (1|0\.\d)/ : /-> reward 0,/);
  });

  it.each([
    [
      "ai-sdk-agent",
      [],
      /^step 1: success 0\.\d\d, held out 0\.\d\d\nheld-out success, sampled: 0\.\d{3} -> 0\.\d{3}: /,
    ],
    [
      "self-play",
      [],
      /^step 1: winning moves 0\.\d\d, baselines -?0\.\d\d and -?0\.\d\d, wins 0\.\d\d\n.*: 0\.\d{3} -> 0\.\d{3}: /,
    ],
    [
      "self-play",
      ["each"],
      /^step 1: winning moves (.*\n)+.*: 0\.\d{3} -> 0\.\d{3}: .*_first\.gguf, .*_second\.gguf\n$/,
    ],
  ])("%s %j: an agent as it is has steps, rewards and an adapter", async (name, more, lines) => {
    const home = process.cwd();
    const place = mkdtempSync(join(tmpdir(), "cria-example-"));
    process.chdir(place);
    try {
      const printed = await run(name, "1", "1", ...more);
      expect(printed).toMatch(lines);
      const files = printed.trim().split(": ").at(-1)!.split(", ");
      expect(files.map((file) => existsSync(file))).toEqual(files.map(() => true));
    } finally {
      process.chdir(home);
      rmSync(place, { recursive: true });
    }
  });

  it("own-tool: as a class it does the same, in conversations at once", async () => {
    const { meteredCalculator } = await import("../examples/own-tool/task.js");
    const { MeteredCalculator } = await import("../examples/own-tool/own-tool-class.js");
    const play = async (tool: BaseTool) => {
      const ids = ["a", "b"];
      for (const id of ids) await tool.create(id);
      const ask = (id: string, expression: string) => tool.execute(id, { expression });
      const answers = [await ask("a", "6*7"), await ask("a", "1/"), await ask("a", "1+1")];
      const rewards = await Promise.all(ids.map((id) => tool.calcReward(id)));
      for (const id of ids) await tool.release(id);
      return { schema: tool.schema, answers, rewards };
    };
    const played = await play(meteredCalculator);
    expect(played.answers.map(({ response, reward }) => [response.text, reward])).toEqual([
      ["42", 0],
      ["error: invalid expression", -0.1],
      ["2", -0.1],
    ]);
    expect(played.rewards).toEqual([1, 0]);
    expect(await play(new MeteredCalculator({ cost: 0.1 }))).toEqual(played);
  });

  it("own-loss: its derivative is right, and training moves the answers apart", async () => {
    const printed = await run("own-loss");
    const [, derivative, numeric] = /derivative (-[\d.]+), by differences (-[\d.]+)/.exec(printed)!.map(Number);
    expect(Math.abs(derivative! - numeric!)).toBeLessThan(0.02);
    const [good, bad] = [...printed.matchAll(/logprob (-[\d.]+) -> (-[\d.]+)/g)].map((m) => [
      Number(m[1]),
      Number(m[2]),
    ]);
    expect(good![1]! - bad![1]!).toBeGreaterThan(good![0]! - bad![0]! + 0.5);
  });

  it("rl-loop: its own loop trains, in less than thirty lines", async () => {
    expect(readFileSync(join(folder, "rl-loop", "rl-loop.ts"), "utf8").split("\n").length).toBeLessThan(30);
    const steps = [...(await run("rl-loop", "3")).matchAll(/success ([\d.]+), gradient ([\d.]+)/g)];
    expect(steps).toHaveLength(3);
    expect(Math.max(...steps.map((match) => Number(match[2])))).toBeGreaterThan(0);
  });

  it("rl-loop: so does the loop that samples a step ahead", async () => {
    const printed = await runFile(join("rl-loop", "sampled-ahead.ts"), "3");
    expect(
      [...printed.matchAll(/step (\d): success [\d.]+, gradient (0\.\d+|[1-9])/g)].map(([, step]) => step),
    ).toEqual(["1", "2", "3"]);
  });

  it("rl-loop: so does the one call, which says how far it came", async () => {
    const printed = await runFile(join("rl-loop", "train.ts"), "2");
    expect(printed.match(/step \d: success [\d.]+, held out [\d.]+/g)).toHaveLength(2);
    expect(printed).toMatch(/held-out success 0\.\d+ -> [01]\.\d+: .*adapter\.gguf\n$/);
  });
});
