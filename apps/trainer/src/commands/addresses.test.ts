import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { loadValueModel } from "@cria/engine/internal";
import { TinyModels } from "@cria/engine/testing";
import { HubServer } from "@cria/hub/testing";
import { readRecords } from "@cria/rollout";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { gsm8kCommand } from "./data.js";
import { doctorCommand } from "./doctor.js";
import { evalCommand } from "./eval.js";
import { exportCommand } from "./export.js";
import { initCommand } from "./init.js";
import { rolloutCommand } from "./rollout.js";
import { sftCommand } from "./sft.js";
import { trainCommand } from "./train.js";

// Twelve problems of GSM8K (MIT, see the LICENSE in their folder).
const root = join(import.meta.dirname, "..", "..", "..", "..");
const sample = join(root, "examples", "gsm8k", "sample");
const policy = join(root, "models", "cria-tiny.gguf");
const MODEL = "hf:me/tiny-GGUF:F32";
const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const sums = lines([1, 2, 3].map((a) => ({ question: `${a} + 1?`, answer: a + 1 })));
const chats = lines([
  { messages: [{ role: "user", content: "hi" }, { role: "assistant", content: "yo" }] }, // biome-ignore format: one row
]);

const models = new TinyModels();
let hub: HubServer;
let cache: string;
let gguf: Buffer;
beforeAll(async () => {
  gguf = readFileSync(await models.write({ seed: 5, embeddingScale: 0.25 }));
  const read = (split: string) => readFileSync(join(sample, `${split}.jsonl`));
  hub = await HubServer.start(
    { type: "model", name: "me/tiny-GGUF", files: { "tiny-F32.gguf": gguf } },
    { type: "model", name: "me/policy-GGUF", files: { "policy.gguf": readFileSync(policy) } },
    { type: "dataset", name: "me/sums", files: { "train.jsonl": sums, "test.jsonl": sums } },
    { type: "dataset", name: "me/chats", files: { "train.jsonl": chats } },
    {
      type: "dataset",
      name: "openai/gsm8k",
      files: { "main/train.jsonl": read("train"), "main/test.jsonl": read("test") },
    },
  );
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await hub.stop();
  await models.cleanUp();
});
beforeEach(() => {
  cache = mkdtempSync(join(models.folder, "cache-"));
  vi.unstubAllEnvs();
  vi.stubEnv("HF_ENDPOINT", hub.endpoint);
  vi.stubEnv("HF_HUB_CACHE", cache);
  vi.stubEnv("HF_TOKEN", "");
  vi.stubEnv("HF_HUB_OFFLINE", "");
  hub.requests.length = 0;
});
const output = captureOutput();

async function run(command: unknown, ...rawArgs: string[]): Promise<number> {
  output.stdout = "";
  output.stderr = "";
  process.exitCode = undefined;
  await runCitty(command as typeof trainCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

/** A run on a model and data of the hub, with rows that a function makes. */
async function writeHubRun(): Promise<{ config: string; folder: string }> {
  const { folder } = await writeTinyRun(models, {
    trainer: { total_training_steps: 1, val_before_train: false, project_name: "p", experiment_name: "e" },
  });
  const config = join(folder, "config.yaml");
  const raw = JSON.parse(readFileSync(config, "utf8"));
  raw.actor_rollout_ref.model.path = MODEL;
  Object.assign(raw.data, { train_files: "hf:me/sums/train", val_files: ["hf:me/sums/test"], map: "./map.ts#row" });
  writeFileSync(config, JSON.stringify(raw));
  writeFileSync(
    join(folder, "map.ts"),
    `type Sum = { question: string; answer: number };
     export const row = ({ question, answer }: Sum) => answer === 3 ? null : {
       data_source: "sums", prompt: [{ role: "user", content: question }], reward_model: { ground_truth: answer } };`,
  );
  return { config, folder };
}

describe("models and data of a hub", () => {
  it("train, resume, evaluate and export; cached files need no network", async () => {
    const { config, folder } = await writeHubRun();
    expect(await run(trainCommand, config), output.stderr).toBe(0);
    expect(output.stderr).toMatch(/download .*tiny-F32\.gguf[\s\S]*download .*me\/sums\/train\.jsonl/);
    const path = join(folder, "p", "e");
    const dumped = readFileSync(join(path, "rollouts", "1.jsonl"), "utf8");
    expect(dumped).toContain('"content":"1 + 1?"');
    // The map leaves it out.
    expect(dumped).not.toContain('"content":"2 + 1?"');
    expect(JSON.parse(readFileSync(join(path, "config.json"), "utf8")).actor_rollout_ref.model.path).toBe(MODEL);
    expect(JSON.parse(readFileSync(join(path, "run.json"), "utf8")).model.startsWith(cache)).toBe(true);

    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const asked = hub.requests.length;
    expect(await run(trainCommand, config, "trainer.total_training_steps=2"), output.stderr).toBe(0);
    expect(output.stderr).toContain("resuming after step 1");
    expect(await run(evalCommand, config, "--model", MODEL, "--out", join(folder, "e.jsonl")), output.stderr).toBe(0);
    expect(await run(rolloutCommand, config, "--rows", "1", "--out", join(folder, "r.jsonl")), output.stderr).toBe(0);
    const merged = join(folder, "m.gguf");
    expect(await run(exportCommand, "--run", path, "--base", MODEL, "--merged", merged), output.stderr).toBe(0);
    expect(existsSync(merged)).toBe(true);
    expect(hub.requests.length).toBe(asked);
    rmSync(cache, { recursive: true });
    expect(await run(exportCommand, "--run", path, "--merged", merged)).toBe(1);
    expect(output.stderr).toContain(`name it: --base ${MODEL}`);
  });

  it("doctor names the files to download, and downloads nothing", async () => {
    const { config } = await writeHubRun();
    expect(await run(doctorCommand, config, "--json"), output.stderr).toBe(0);
    const find = () => JSON.parse(output.stdout).checks.find(({ name }: { name: string }) => name === "model");
    expect(find()).toMatchObject({
      verdict: "warning",
      found: expect.stringContaining(`${MODEL} is not in the cache`),
    });
    expect(hub.requests).toEqual([]);
    const model = await loadModel({ path: MODEL, contextSize: 64, maxSequences: 1, threads: 1 });
    expect(model.info.path.startsWith(cache)).toBe(true);
    await model.dispose();
    await run(doctorCommand, config, "--json");
    expect(find()).toMatchObject({
      verdict: "ok",
      found: expect.stringContaining(join(cache, "models--me--tiny-GGUF")),
    });
    await (await loadValueModel({ path: MODEL, trainable: "lora", lora: { rank: 1 }, threads: 1 })).dispose();
  });

  it("sft takes both", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cria-hub-sft-"));
    const config = join(folder, "sft.yaml");
    writeFileSync(
      config,
      JSON.stringify({
        model: { path: MODEL, lora_rank: 2 },
        data: { train_files: "hf:me/chats", train_batch_size: 1, max_length: 64 },
        trainer: {
          total_training_steps: 1,
          output_path: "a.gguf",
          threads: 1,
          default_local_dir: join(folder, "runs"),
        },
      }),
    );
    expect(await run(sftCommand, config), output.stderr).toBe(0);
    expect(existsSync(join(folder, "a.gguf"))).toBe(true);
    rmSync(folder, { recursive: true });
  });

  it("init fits a task to such a model, and its config names the address", async () => {
    const folder = join(models.folder, "fitted");
    expect(await run(initCommand, folder, "--model", "hf:me/policy-GGUF"), output.stderr).toBe(0);
    expect(readFileSync(join(folder, "config.yaml"), "utf8")).toMatch(/path: "?hf:me\/policy-GGUF/);
  });

  it("errors come before anything is loaded, and a misspelt name gets the list of names", async () => {
    const { config } = await writeHubRun();
    expect(await run(trainCommand, config, "actor_rollout_ref.model.path=hf:me/tiny-GGUF:Q8_0")).toBe(1);
    expect(output.stderr).toMatch(/Q8_0[\s\S]*\bF32\b/);
    expect(await run(trainCommand, config, "data.train_files=hf:me/sums/dev")).toBe(1);
    expect(output.stderr).toMatch(/default\/test, default\/train/);
  });
});

describe("columns of other names", () => {
  it("are an error that names them, and the function that maps them", async () => {
    const { config } = await writeHubRun();
    expect(await run(trainCommand, config, "data.map=null")).toBe(1);
    expect(output.stderr).toMatch(
      /train\.jsonl, line 1: .*"prompt"[\s\S]*received: columns question, answer[\s\S]*data\.map: \.\/map\.ts#row[\s\S]*\(\{ question, answer \}\) =>[\s\S]*data\.prompt_key/,
    );
  });

  it("a map that fails, gives no row or is not a function: the error names the map and the record", async () => {
    const { config, folder } = await writeHubRun();
    const wrong = join(folder, "wrong.mjs");
    writeFileSync(
      wrong,
      "export const throws = (r) => r.a.b; export const nothing = () => {}; export const text = 'x';",
    );
    for (const [name, message] of [
      ["throws", /train\.jsonl, line 1: .*data\.map[\s\S]*Cannot read properties/],
      ["nothing", /line 1: .*data\.map[\s\S]*received: undefined/],
      ["text", /data\.map ".*#text": /],
      ["none", /data\.map ".*#none": [\s\S]*exports .*throws/],
    ] as const) {
      expect(await run(trainCommand, config, `data.map=${wrong}#${name}`)).toBe(1);
      expect(output.stderr).toMatch(message);
    }
  });
});

describe("cria data gsm8k", () => {
  it("without --source takes the hub's", async () => {
    const out = join(models.folder, "gsm8k");
    expect(await run(gsm8kCommand, "--out", out), output.stderr).toBe(0);
    const rows = await readRecords(join(out, "train.parquet"));
    const [first] = readFileSync(join(sample, "train.jsonl"), "utf8").split("\n");
    expect(rows[0]!.value).toMatchObject({
      data_source: "openai/gsm8k",
      extra_info: { question: JSON.parse(first!).question },
    });
    expect(existsSync(join(out, "test.parquet"))).toBe(true);
    expect(await run(gsm8kCommand, "--source", "hf:openai/gsm8k/main@v9", "--out", out)).toBe(1);
    expect(output.stderr).toMatch(/gsm8k at v9: /);
    expect(await run(gsm8kCommand, "--source", "nowhere", "--out", out)).toBe(1);
    expect(output.stderr).toMatch(/--source: /);
  });
});
