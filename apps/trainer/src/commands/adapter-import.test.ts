import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listQuantizeTypes, loadModel, quantizeModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { StockLlama } from "../testing/stock-llama.js";
import { exportCommand } from "./export.js";
import { trainCommand } from "./train.js";

const root = join(import.meta.dirname, "..", "..", "..", "..");
const fixtures = join(root, "packages", "engine", "fixtures");
/** An adapter made by llama.cpp's convert_lora_to_gguf.py. */
const adapter = (name: string) => join(fixtures, "adapter", `${name}.gguf`);
const base = (name: string) => join(fixtures, "torch", `${name}.gguf`);
const expected = JSON.parse(readFileSync(join(fixtures, "adapter", "expected.json"), "utf8")) as Record<
  string,
  { tokenIds: number[]; logprobs: number[] }
>;

const models = new TinyModels();
let stock: StockLlama;
beforeAll(async () => {
  stock = await StockLlama.open();
});
afterAll(async () => {
  await models.cleanUp();
  await stock.dispose();
});

const output = captureOutput();

async function run<T>(command: typeof trainCommand | typeof exportCommand, ...rawArgs: string[]): Promise<T> {
  output.stdout = "";
  await runCitty(command as typeof trainCommand, { rawArgs });
  if (process.exitCode) throw new Error(output.stderr);
  return JSON.parse(output.stdout) as T;
}

function distance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Array.from(a, (x, i) => Math.abs(x - b[i]!)).reduce((sum, x) => sum + x, 0) / a.length;
}

const score = async (path: string, tokenIds: number[], lora?: string) => {
  const model = await models.load({}, { path, lora: lora ? { path: lora } : { rank: 1 } });
  return (await model.score([{ tokenIds }]))[0]!.logprobs;
};

describe("an adapter of llama.cpp's converter", () => {
  it.each(["llama", "qwen2", "qwen3"])("has stock llama.cpp's logprobs with --lora: %s", async (name) => {
    const { tokenIds, logprobs } = expected[name]!;
    const theirs = await stock.score(base(name), tokenIds, adapter(name));
    expect(distance(await score(base(name), tokenIds, adapter(name)), theirs)).toBeLessThan(5e-3);
    // PyTorch agrees with both; without the adapter it would not.
    expect(distance(logprobs, theirs)).toBeLessThan(5e-3);
    expect(distance(await stock.score(base(name), tokenIds), theirs)).toBeGreaterThan(0.1);
  });

  function writeRun(model: object): { config: string; path: string } {
    const folder = join(models.folder, `run-${runs++}`);
    const path = join(folder, "cria", "default");
    mkdirSync(folder);
    writeFileSync(
      join(folder, "rows.jsonl"),
      ["a", "bb", "ccc"]
        .map((content) => `${JSON.stringify({ data_source: "test", prompt: [{ role: "user", content }] })}\n`)
        .join(""),
    );
    writeFileSync(join(folder, "reward.mjs"), "export const computeScore = (source, text) => text.length % 3;\n");
    writeFileSync(
      join(folder, "config.yaml"),
      JSON.stringify({
        actor_rollout_ref: {
          model: { path: base("qwen3"), lora_adapter_path: adapter("qwen3"), ...model },
          actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 3 },
          rollout: { n: 4, prompt_length: 48, response_length: 8, max_num_seqs: 12 },
        },
        data: { train_files: "rows.jsonl", train_batch_size: 3, max_prompt_length: 48, max_response_length: 8 },
        custom_reward_function: { path: "reward.mjs" },
        trainer: { default_local_dir: folder, total_training_steps: 2, threads: 1, val_before_train: false },
      }),
    );
    return { config: join(folder, "config.yaml"), path };
  }
  let runs = 0;

  it("is the start of `cria train`; `cria export` writes a file that stock llama.cpp applies alike", async () => {
    const { config, path } = writeRun({ lora_rank: 4, lora_alpha: 12 });
    const { metrics } = await run<{ metrics: Record<string, number> }>(trainCommand, config, "--json");
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    const trained = join(models.folder, "trained.gguf");
    await run(exportCommand, "--run", path, "--adapter", trained, "--json");
    const { tokenIds, logprobs } = expected.qwen3!;
    const theirs = await stock.score(base("qwen3"), tokenIds, trained);
    expect(distance(await score(base("qwen3"), tokenIds, trained), theirs)).toBeLessThan(5e-3);
    const moved = distance(theirs, logprobs);
    // Two steps away from its start, and not from another start.
    expect(moved).toBeGreaterThan(0.02);
    expect(moved).toBeLessThan(distance(await stock.score(base("qwen3"), tokenIds), logprobs));
  });

  it("with another rank or alpha in the config is refused", async () => {
    await expect(run(trainCommand, writeRun({ lora_rank: 8 }).config)).rejects.toThrow(/\brank 8\b/);
    process.exitCode = undefined;
    await expect(run(trainCommand, writeRun({ lora_alpha: 32 }).config)).rejects.toThrow(/\balpha 32\b/);
    process.exitCode = undefined;
    await expect(run(trainCommand, writeRun({ target_modules: ["q_proj"] }).config)).rejects.toThrow(/: attn_q\n/);
  });
});

describe("quantizing the embedded policy", () => {
  // Mean distance of a logprob on a prompt and its greedy answer. Its rows are short: where they do not divide into
  // blocks of 256, K-quants take the next more exact type of blocks of 32.
  it("stock llama.cpp loads every type, and the likelier types say the same", async () => {
    const policy = join(root, "models", "cria-tiny.gguf");
    const model = await loadModel({ path: policy, contextSize: 256, maxSequences: 1, threads: 1 });
    const prompt = model.tokenize("<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n");
    const { tokenIds } = await model
      .createSequence()
      .generate(prompt, { maxTokens: 24, temperature: 0, stopTokens: [] });
    await model.dispose();
    const text = [...prompt, ...tokenIds];
    const exact = await stock.score(policy, text);
    const tolerances: Record<string, number> = { F32: 1e-3, F16: 5e-3, BF16: 0.03, Q8_0: 0.06, Q6_K: 0.06 };
    for (const type of listQuantizeTypes()) {
      const file = join(models.folder, `policy-${type}.gguf`);
      await quantizeModel({ input: policy, output: file, type, threads: 1 });
      expect(existsSync(file)).toBe(true);
      const logprobs = await stock.score(file, text);
      expect(distance(logprobs, exact), type).toBeLessThan(tolerances[type] ?? 0.6);
    }
  });
});
