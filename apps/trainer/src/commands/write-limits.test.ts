import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { runHere } from "../testing/run-here.js";

const output = captureOutput();
const models = new TinyModels();
afterAll(() => models.cleanUp());

const cria = [process.execPath, join(import.meta.dirname, "..", "..", "bin", "cria.mjs")];

/** Runs `cria` where no file may grow beyond this many KiB: writes fail as on a full disk, at a chosen place. */
function run(limitKb: number, ...args: string[]) {
  const shell = `ulimit -f ${limitKb}; exec "$0" "$@"`;
  const child = spawnSync("bash", ["-c", shell, ...cria, ...args], { encoding: "utf8", timeout: 240_000 });
  return { code: child.status, stderr: child.stderr };
}

/** Expects one error with the file, the reason and a remedy; no stack. */
function expectRefusal(stderr: string, file: RegExp) {
  const all = stderr.trim().split("\n");
  expect(all.filter((line) => line.startsWith("error ")).length).toBe(1);
  // The coach may have reported earlier steps.
  const lines = all.slice(all.findIndex((line) => line.startsWith("error ")));
  expect(lines[0]).toMatch(new RegExp(`^error .*${file.source}.*: cannot (be written|write it)`));
  expect(stderr).toMatch(/EFBIG|File too large/);
  expect(lines.at(-1)).toMatch(/^ {2}try: raise the limit of file sizes \(ulimit -f unlimited\), or /);
  expect(lines.length).toBeLessThanOrEqual(4);
}

const list = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

// Only a POSIX shell has such limits.
describe.skipIf(process.platform === "win32")("a limit on the size of files", () => {
  const steps = 14;
  const trainer = { total_training_steps: steps, save_freq: 1, val_before_train: false };
  const full = ["actor_rollout_ref.model.lora_rank=0", "actor_rollout_ref.actor.optim.lr=1e-6"];

  it.each([
    ["metrics.jsonl, 5 KiB in each step", 60, [], /metrics\.jsonl/],
    ["a checkpoint of 54 KiB", 50, [], /checkpoints\/global_step_1/],
    ["a step's conversations, 18 KiB", 12, [...full, "trainer.save_freq=-1"], /rollouts\/1\.jsonl/],
    ["config.json, 6 KiB", 4, full, /config\.json/],
    ["the lock", 0, full, /default\.run\.lock/],
    ["the adapter that llama.cpp is to read, 20 KiB", 10, [], /a temporary file in \//],
  ] as const)("%s: one error that names the file; the same command goes on", async (_, limitKb, overrides, file) => {
    const { folder } = await writeTinyRun(models, { trainer });
    const words = ["train", join(folder, "config.yaml"), "--json", ...overrides];
    const { code, stderr } = run(limitKb, ...words);
    expectRefusal(stderr, file);
    expect(code).toBe(1);
    const path = join(folder, "cria", "default");
    const saved = list(join(path, "checkpoints"));
    expect([...saved, ...list(path)].filter((name) => name.endsWith(".tmp"))).toEqual([]);
    await runHere(folder, words);
    expect(process.exitCode, output.stderr).toBeUndefined();
    if (saved.length > 0) expect(output.stderr).toContain(`resuming after step ${saved.length}`);
    const metrics = readFileSync(join(path, "metrics.jsonl"), "utf8").trimEnd().split("\n");
    expect(metrics.map((line) => JSON.parse(line)["training/global_step"])).toEqual(
      Array.from({ length: steps }, (_, i) => i + 1),
    );
  });

  it("by other commands: the same error, and no half-written file", async () => {
    const { folder } = await writeTinyRun(models, { trainer: { ...trainer, total_training_steps: 1 } });
    const config = join(folder, "config.yaml");
    await runHere(folder, ["train", config, "--json"]);
    const path = join(folder, "cria", "default");
    const source = join(import.meta.dirname, "..", "..", "..", "..", "examples", "gsm8k", "sample");
    const target = join(folder, "out");
    for (const [limitKb, file, ...words] of [
      [1, /trajectories\.jsonl/, "rollout", config, `--out=${join(target, "trajectories.jsonl")}`, ...full],
      [1, /train\.parquet/, "data", "gsm8k", "--source", source, "--out", target],
      [10, /a temporary file in \//, "export", "--run", path, "--adapter", join(target, "a.gguf")],
      [24, /merged\.gguf/, "export", "--run", path, "--merged", join(target, "merged.gguf")],
      [1, /my-task/, "init", join(target, "my-task")],
    ] as const) {
      const { code, stderr } = run(limitKb, ...words, "--json");
      expectRefusal(stderr, file);
      expect(code).toBe(1);
      expect(list(target).filter((name) => name !== "my-task")).toEqual([]);
    }
  });
});
