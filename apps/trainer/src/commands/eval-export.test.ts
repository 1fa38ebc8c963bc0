import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { loadModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { getLlama, LlamaLogLevel } from "node-llama-cpp";
import { afterAll, describe, expect, it, vi } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { evalCommand } from "./eval.js";
import { exportCommand } from "./export.js";
import { trainCommand } from "./train.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const output = captureOutput();

const commands = { train: trainCommand, eval: evalCommand, export: exportCommand };

async function run<T = Record<string, unknown>>(name: keyof typeof commands, ...rawArgs: string[]): Promise<T> {
  output.stdout = "";
  await runCitty(commands[name] as typeof trainCommand, { rawArgs });
  if (process.exitCode) throw new Error(output.stderr);
  return JSON.parse(output.stdout) as T;
}

/** A trained run of three steps. */
async function makeRun(overrides: string[] = []) {
  const options = { data: { val_files: "rows.jsonl" }, actor: { optim: { lr: 3e-2 } } };
  const { folder } = await writeTinyRun(models, options);
  const config = join(folder, "config.yaml");
  const steps = ["trainer.total_training_steps=3", "trainer.save_freq=1", ...overrides];
  const { metrics } = await run<{ metrics: Record<string, number> }>("train", config, "--json", ...steps);
  return { config, folder, metrics, path: join(folder, "cria", "default") };
}

type Evaluation = { step: number | null; success: number; metrics: Record<string, number>; file: string };
const acc = "val-core/test/reward/mean@1";

describe("cria eval", () => {
  it("a checkpoint has the numbers of the training's own validation; adapter, model and base are judged too", async () => {
    const { config, folder, metrics, path } = await makeRun();
    const out = ["--json", "--out", join(folder, "eval.jsonl")];
    const newest = await run<Evaluation>("eval", config, ...out, "--checkpoint", path);
    expect(newest.step).toBe(3);
    expect(newest.metrics[acc]).toBe(metrics[acc]);
    expect(readFileSync(newest.file, "utf8").trim().split("\n")).toHaveLength(3);
    const first = await run<Evaluation>(
      "eval",
      config,
      ...out,
      "--checkpoint",
      join(path, "checkpoints", "global_step_1"),
    );
    expect(first.step).toBe(1);
    const adapter = await run<Evaluation>("eval", config, ...out, "--adapter", join(path, "adapter.gguf"));
    const base = await run<Evaluation>("eval", config, ...out);
    // Greedy, so the draws do not matter: the adapter speaks like the checkpoint, not like the base.
    expect(adapter.metrics[acc]).toBe(newest.metrics[acc]);
    expect(base.metrics[acc]).not.toBe(newest.metrics[acc]);
    const merged = join(folder, "merged.gguf");
    await run("export", "--run", path, "--merged", merged, "--json");
    const whole = await run<Evaluation>("eval", config, ...out, "--model", merged);
    expect(whole.metrics[acc]).toBeCloseTo(newest.metrics[acc]!, 6);
    await expect(run("eval", config, "--model", merged, "--adapter", merged)).rejects.toThrow(
      "--adapter and --model: ",
    );
  });
});

describe("cria export", () => {
  it("adapter and merged model give the trainer's greedy text in stock llama.cpp", {
    timeout: 60_000,
  }, async () => {
    const { folder, path } = await makeRun();
    const [adapter, merged, small] = ["a.gguf", "m.gguf", "q.gguf"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const result = await run("export", "--run", path, "--adapter", adapter, "--merged", merged, "--json");
    expect(result).toMatchObject({ step: 3, adapter, merged: { file: merged, merged: 14 } });
    await run("export", "--run", path, "--merged", small, "--quantize", "Q8_0", "--json");
    const { model: base } = JSON.parse(readFileSync(join(path, "run.json"), "utf8")) as { model: string };

    const ours = await loadModel({
      path: base,
      lora: { path: join(path, "adapter.gguf") },
      contextSize: 256,
      maxSequences: 1,
      threads: 1,
    });
    const prompt = [...ours.tokenize("<|im_start|>user\nbb<|im_end|>\n<|im_start|>assistant\n")];
    const speak = async (engine: typeof ours) => [
      ...(await engine.createSequence().generate(prompt, { maxTokens: 24, temperature: 0, stopTokens: [] })).tokenIds,
    ];
    vi.restoreAllMocks();
    const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
    const speakStock = async (modelPath: string, lora?: string) => {
      const stock = await llama.loadModel({ modelPath });
      const adapters = lora ? { adapters: [{ filePath: lora, scale: 1 }] } : undefined;
      const context = await stock.createContext({ contextSize: 256, threads: 1, lora: adapters });
      const tokens: number[] = [];
      for await (const token of context
        .getSequence()
        .evaluate(prompt as never, { temperature: 0, yieldEogToken: true })) {
        tokens.push(token);
        if (tokens.length === 24) break;
      }
      await context.dispose();
      // `llama.dispose()` waits for ever if the garbage collector takes a context with an adapter first.
      await stock.dispose();
      return tokens;
    };
    try {
      const expected = await speak(ours);
      expect(await speakStock(base, adapter)).toEqual(expected);
      expect(await speakStock(merged)).toEqual(expected);
      // The training matters: without it the text differs.
      expect(await speakStock(base)).not.toEqual(expected);
      // Eight bits may flip near ties of a random model, but the file loads and speaks.
      expect(await speakStock(small)).toHaveLength(24);
    } finally {
      await ours.dispose();
      await llama.dispose();
    }
  });

  it("full training: the whole model, and no adapter", async () => {
    const { folder, path } = await makeRun(["actor_rollout_ref.model.lora_rank=0"]);
    const merged = join(folder, "full.gguf");
    expect(await run("export", "--run", path, "--merged", merged, "--json")).toMatchObject({ merged: { merged: 0 } });
    expect(readFileSync(merged).equals(readFileSync(join(path, "model.gguf")))).toBe(true);
    await expect(run("export", "--run", path, "--adapter", join(folder, "x.gguf"))).rejects.toThrow(/lora_rank/);
  });

  it("a model that no run trained is written in another type", async () => {
    const path = await models.write();
    const out = join(dirname(path), "half.gguf");
    const { merged } = await run<{ merged: { types: Record<string, number> } }>(
      ...(["export", "--model", path, "--merged", out, "--quantize", "f16", "--json"] as const),
    );
    expect(merged).toMatchObject({ file: out, merged: 0, types: { f16: expect.any(Number) } });
    const model = await loadModel({ path: out, contextSize: 64, maxSequences: 1, threads: 1 });
    expect(Object.keys(model.info.weightTypes)).toContain("f16");
    await model.dispose();
    for (const [name, value] of [
      ["run", "runs/p/e"],
      ["adapter", out],
      ["base", path],
    ] as const) {
      const wrong = ["--model", path, "--merged", out, `--${name}`, value];
      await expect(run("export", ...wrong)).rejects.toThrow(new RegExp(`--model and --${name}: `));
      process.exitCode = undefined;
    }
    await expect(run("export", "--merged", out)).rejects.toThrow(/--run or --model: /);
    process.exitCode = undefined;
  });

  it("reports wrong arguments", async () => {
    const { folder, path } = await makeRun();
    const out = join(folder, "x.gguf");
    await expect(run("export", "--run", path)).rejects.toThrow(/--adapter or --merged/);
    process.exitCode = undefined;
    await expect(run("export", "--run", folder, "--adapter", out)).rejects.toThrow(new RegExp(`\\nerror ${folder}: `));
    process.exitCode = undefined;
    await expect(run("export", "--run", path, "--merged", out, "--quantize", "Q4_9")).rejects.toThrow(
      /--quantize[\s\S]*expected: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, [\s\S]*received: Q4_9/,
    );
    process.exitCode = undefined;
    await expect(run("export", "--run", path, "--adapter", out, "--base", "none.gguf")).rejects.toThrow(/none\.gguf/);
    process.exitCode = undefined;
    await expect(run("export", "--run", path, "--adapter", join(folder, "no", "x.gguf"))).rejects.toThrow(
      /no\/x\.gguf: /,
    );
    expect(existsSync(out)).toBe(false);
  });
});
