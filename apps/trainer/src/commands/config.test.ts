import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { captureOutput } from "../testing/capture-output.js";
import { configCommand } from "./config.js";

const output = captureOutput();
const folder = mkdtempSync(join(tmpdir(), "cria-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

mkdirSync(join(folder, "elsewhere"));
const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const script = write(
  "run.sh",
  `python3 -m verl.trainer.main_ppo --config-name=turns algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=16 \\
  actor_rollout_ref.rollout.multi_turn.tool_config_path="$PROJECT/tools.yaml" data.train_files=a.parquet "$@"\n`,
);
const base = write(
  "elsewhere/turns.yaml",
  "data: { train_batch_size: 64, max_prompt_length: 128 }\nactor_rollout_ref: { rollout: { n: 2, multi_turn: { enable: true } } }\n",
);
const second = write("elsewhere/second.yaml", "data: { train_batch_size: 32 }\n");

/** Runs the command; returns its exit code and output. */
async function convert(...rawArgs: string[]) {
  let stdout = "";
  const { write } = process.stdout;
  process.stdout.write = (text: string | Uint8Array) => {
    stdout += String(text);
    return true;
  };
  try {
    await runCitty(configCommand, { rawArgs });
  } finally {
    process.stdout.write = write;
  }
  return { code: Number(process.exitCode ?? 0), stdout, config: parse(stdout) };
}

describe("cria config --from-verl of several files", () => {
  it.each([
    ["the config first", ["--from-verl", base, "--from-verl", script]],
    ["the script first", ["--from-verl", script, "--from-verl", base]],
    ["the config as another word", ["--from-verl", script, base]],
    ["with =", [`--from-verl=${base}`, `--from-verl=${script}`]],
  ])("lays the script over its config: %s", async (_, words) => {
    const { code, config, stdout } = await convert(...words);
    expect(code).toBe(0);
    expect(config.data).toMatchObject({ train_batch_size: 64, max_prompt_length: 128 });
    expect(config.actor_rollout_ref.rollout).toMatchObject({ n: 16, multi_turn: { enable: true } });
    expect(stdout).not.toContain("--config-name=turns");
    expect(stdout).toContain("tool_config_path");
  });

  it("a later config lies over an earlier one, an override over all", async () => {
    const words = ["--from-verl", base, "--from-verl", second, "--from-verl", script, "actor_rollout_ref.rollout.n=3"];
    const { config } = await convert(...words);
    expect(config.data).toMatchObject({ train_batch_size: 32, max_prompt_length: 128 });
    expect(config.actor_rollout_ref.rollout.n).toBe(3);
    const turned = await convert("--from-verl", second, "--from-verl", base, "--from-verl", script);
    expect(turned.config.data.train_batch_size).toBe(64);
  });

  it("names the missing config of a script", async () => {
    const { code, stdout } = await convert("--from-verl", script);
    expect(code).toBe(0);
    expect(stdout).toContain("--config-name=turns");
  });

  it("refuses two scripts", async () => {
    const { code } = await convert("--from-verl", script, "--from-verl", script);
    expect(code).toBe(1);
    expect(output.stderr).toContain("run.sh");
  });
});
