import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import type { Finding } from "@cria/trainer";
import { RunLock } from "@cria/trainer/internal";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { diagnoseRun } from "../index.js";
import { removeRun } from "../manage/remove-run.js";
import { captureOutput } from "../testing/capture-output.js";
import { coachCommand } from "./coach.js";
import { runsCommand } from "./runs.js";
import { showCommand } from "./show.js";
import { trainCommand } from "./train.js";
import { watchCommand } from "./watch.js";

const models = new TinyModels();
const work = mkdtempSync(join(tmpdir(), "cria-runs-"));
afterAll(async () => {
  rmSync(work, { recursive: true, force: true });
  await models.cleanUp();
});
const output = captureOutput();

const commands = {
  coach: coachCommand,
  runs: runsCommand,
  show: showCommand,
  train: trainCommand,
  watch: watchCommand,
};

/** Runs a command in this process; returns its exit code. */
async function run(name: keyof typeof commands, ...rawArgs: string[]): Promise<number> {
  output.stdout = "";
  output.stderr = "";
  process.exitCode = undefined;
  await runCitty(commands[name] as typeof trainCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

/** A run of four steps with equal rewards, of tiny random weights. */
let folder: string;
let trained: string;
let printed: string;
const copy = (name: string) => {
  const path = join(work, "p", name);
  cpSync(trained, path, { recursive: true });
  return path;
};

beforeAll(async () => {
  ({ folder } = await writeTinyRun(models, {
    reward: "return 0;",
    trainer: { total_training_steps: 4, save_freq: 2 },
  }));
  trained = join(folder, "cria", "default");
});

describe("the end of cria train", () => {
  it("has the curve, problems, the worst conversation, and the next commands", async () => {
    expect(await run("train", join(folder, "config.yaml"))).toBe(0);
    printed = output.stdout;
    expect(printed).toMatch(/in training: ▁▁▁▁\n/);
    expect(printed).toMatch(/high truncated: .*\n/);
    expect(printed).toMatch(/^worst of the last step: \S+ #\d+, reward 0\s\(no token was\sleft\)\n {2}\S/m);
    for (const command of [
      `cria view ${trained}`,
      `cria show ${trained} --step 4 --worst 3`,
      `cria export --run ${trained}`,
    ])
      expect(printed).toContain(command);
    expect(printed).toMatch(new RegExp(`cria replay ${trained} --step 4 --trajectory \\d+\\n`));
    // Colours and bars are for terminals.
    for (const mark of ["\x1b", "█"]) expect(printed).not.toContain(mark);
  });
});

describe("cria coach", () => {
  it("names the problem, the remedy and a conversation that shows it; --json has the findings", async () => {
    expect(await run("coach", trained)).toBe(0);
    expect(output.stdout).toMatch(/^high truncated: In steps 1 to 4 no conversation had an advantage/);
    expect(output.stdout).toContain(`see one: cria show ${trained} --step 4 --filter truncated --worst 1`);
    expect(await run("coach", trained, "--json")).toBe(0);
    const findings = JSON.parse(output.stdout) as Finding[];
    expect(findings.map(({ rule, severity }) => [rule, severity])).toEqual([
      ["truncated", "high"],
      ["no_reward", "high"],
    ]);
    expect(findings[0]!.keys).toContain("data.max_response_length");
    expect(await diagnoseRun(trained)).toEqual(findings);
  });

  it("stands below the conversations of cria show, and not in its JSON", async () => {
    await run("show", trained, "--limit", "1");
    expect(output.stdout).toMatch(/\nhigh truncated: [\s\S]*\n1 more: cria coach /);
    await run("show", trained, "--limit", "1", "--json");
    expect(() => JSON.parse(output.stdout)).not.toThrow();
  });

  it("refuses a folder that is not a run, and names the runs below it", async () => {
    expect(await run("coach", folder)).toBe(1);
    expect(output.stderr).toMatch(/^error [\s\S]*: .*cria\/default/m);
  });
});

describe("cria runs", () => {
  it("lists runs, the newest first, with status, steps and curve", async () => {
    expect(await run("runs", folder)).toBe(0);
    expect(output.stdout).toMatch(/cria\/default +ended +4\/4 .*▁▁▁▁/);
    expect(await run("runs", folder, "--json")).toBe(0);
    expect(JSON.parse(output.stdout)).toMatchObject([
      { path: trained, status: "ended", step: 4, total: 4, updated_at: expect.any(Number) },
    ]);
    const empty = join(work, "nothing");
    mkdirSync(empty);
    await run("runs", empty);
    expect(output.stdout).toMatch(/^no runs in /);
  });

  it("compares two: metrics side by side, and the differences of their configs", async () => {
    const other = copy("other");
    const file = join(other, "config.json");
    const config = JSON.parse(readFileSync(file, "utf8"));
    config.actor_rollout_ref.actor.optim.lr = 0.5;
    writeFileSync(file, JSON.stringify(config));
    expect(await run("runs", "compare", trained, other)).toBe(0);
    expect(output.stdout).toMatch(/critic\/score\/mean +0 +0\n/);
    expect(output.stdout).toMatch(/\n {2}actor_rollout_ref\.actor\.optim\.lr: 0\.01 \| 0\.5$/m);
    await run("runs", "compare", trained, other, "--json");
    const { metrics, config: differences, runs } = JSON.parse(output.stdout);
    expect(runs).toHaveLength(2);
    expect(differences).toEqual([{ key: "actor_rollout_ref.actor.optim.lr", before: 0.01, after: 0.5 }]);
    expect(metrics).toContainEqual({ name: "training/global_step", values: [4, 4] });
    expect(await run("runs", "compare", trained)).toBe(1);
    expect(output.stderr).toMatch(/\b2 run folders/);
  });

  it("resumes a moved run in its new folder, to the steps of its config", async () => {
    const moved = copy("moved");
    const file = join(moved, "config.json");
    const config = JSON.parse(readFileSync(file, "utf8"));
    config.trainer.total_training_steps = 6;
    writeFileSync(file, JSON.stringify(config));
    expect(await run("runs", "resume", moved, "--json")).toBe(0);
    expect(output.stderr).toMatch(/resuming after step 4, from .*moved/);
    expect(JSON.parse(output.stdout)).toMatchObject({ run_folder: moved, metrics: { "training/global_step": 6 } });
    const steps = readFileSync(join(moved, "metrics.jsonl"), "utf8").trim().split("\n");
    expect(steps.map((line) => JSON.parse(line)["training/global_step"])).toEqual([0, 1, 2, 3, 4, 5, 6]);
    // The original run is unchanged.
    expect(readFileSync(join(trained, "metrics.jsonl"), "utf8").trim().split("\n")).toHaveLength(5);
  });

  it("removes a run after a confirmation", async () => {
    const path = copy("unwanted");
    expect(await run("runs", "remove", path)).toBe(1);
    expect(output.stderr).toMatch(/unwanted[\s\S]*--yes/);
    expect(await removeRun(path, async () => false)).toBe(false);
    expect(existsSync(path)).toBe(true);
    expect(await run("runs", "remove", path, "--yes", "--json")).toBe(0);
    expect(JSON.parse(output.stdout)).toEqual({ path, removed: true });
    expect(existsSync(path)).toBe(false);
  });

  it("refuses to remove a running run, a run with others in it, and a folder that is not a run", async () => {
    const path = copy("busy");
    const lock = await RunLock.acquire(path);
    try {
      expect(await run("runs", "remove", path, "--yes")).toBe(1);
      expect(output.stderr).toMatch(/^error .*busy: /m);
    } finally {
      lock.release();
    }
    cpSync(trained, join(path, "inner"), { recursive: true });
    expect(await run("runs", "remove", path, "--yes")).toBe(1);
    expect(output.stderr).toMatch(/^error .*busy: [\s\S]*\b1 below it/m);
    expect(await run("runs", "remove", work, "--yes")).toBe(1);
    expect(existsSync(path)).toBe(true);
  });
});

describe("cria watch", () => {
  it("writes a line for each step where there is no terminal", async () => {
    expect(await run("watch", trained)).toBe(0);
    expect(output.stdout.trim().split("\n")).toHaveLength(4);
    expect(output.stdout).toMatch(/^step 1\/4 {2}reward 0\.000 {2}success 0\.000/);
  });
});
