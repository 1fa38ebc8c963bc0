import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDataset } from "@cria/rollout";
import { runCommand } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { gsm8kCommand } from "./data.js";

const sample = join(import.meta.dirname, "..", "..", "..", "..", "examples", "gsm8k", "sample");
const folder = mkdtempSync(join(tmpdir(), "cria-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const output = captureOutput();

async function run(...rawArgs: string[]): Promise<number> {
  await runCommand(gsm8kCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

describe("cria data gsm8k", () => {
  it("writes both splits and says what comes next", async () => {
    const out = join(folder, "tool");
    expect(await run("--source", sample, "--out", out)).toBe(0);
    expect(output.stdout).toMatch(/train\.parquet: 8 rows[\s\S]*test\.parquet: 4 rows[\s\S]*next: data\.train_files=/);
    expect((await loadDataset([join(out, "train.parquet")]))[0]!.extraInfo.need_tools_kwargs).toBe(true);
  });

  it("--json, in the other shape", async () => {
    const out = join(folder, "interaction");
    expect(await run("--source", sample, "--out", out, "--shape", "interaction", "--json")).toBe(0);
    const files = JSON.parse(output.stdout) as { file: string; rows: number; bytes: number }[];
    expect(files.map((f) => f.rows)).toEqual([8, 4]);
    for (const { bytes } of files) expect(bytes).toBeGreaterThan(1000);
    expect((await loadDataset([files[1]!.file]))[0]!.extraInfo.interaction_kwargs).toMatchObject({ name: "gsm8k" });
  });

  it("errors say what is wrong, and leave nothing behind", async () => {
    expect(await run("--source", folder, "--out", join(folder, "x"))).toBe(1);
    expect(output.stderr).toMatch(/train\.jsonl: /);
    expect(await run("--source", sample, "--out", join(folder, "x"), "--shape", "chat")).toBe(1);
    expect(output.stderr).toMatch(/--shape[\s\S]*tool or interaction[\s\S]*chat/);
    expect(existsSync(join(folder, "x"))).toBe(false);
  });
});
