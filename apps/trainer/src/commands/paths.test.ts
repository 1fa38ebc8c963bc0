import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, sftConfigSchema, trainConfigSchema } from "@cria/trainer";
import { listLeaves, listMissingTrainPaths, pathKeys, resolvePath } from "@cria/trainer/internal";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { checkEnvCommand } from "./check-env.js";
import { evalCommand } from "./eval.js";
import { exportCommand } from "./export.js";
import { trainCommand } from "./train.js";

// A working directory, and next to it the folder of a config.
const root = realpathSync(mkdtempSync(join(tmpdir(), "cria-paths-")));
const work = join(root, "work");
const task = join(root, "task");
const file = join(task, "config.yaml");
const MODEL = "actor_rollout_ref.model.path";
const TURNS = "actor_rollout_ref.rollout.multi_turn";

beforeAll(() => {
  for (const folder of [work, task, join(work, "models")]) mkdirSync(folder);
  writeFileSync(join(work, "models", "m.gguf"), "GGUF");
  for (const name of ["m.gguf", "rows.jsonl", "loss.ts"]) writeFileSync(join(task, name), "");
  writeFileSync(file, "actor_rollout_ref: { model: { path: m.gguf } }\ndata: { train_files: rows.jsonl }\n");
  vi.spyOn(process, "cwd").mockReturnValue(work);
});
afterAll(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true });
});
const output = captureOutput();

const load = (...overrides: string[]) => {
  vi.spyOn(process, "cwd").mockReturnValue(work);
  return loadConfig(trainConfigSchema, file, overrides);
};
const missing = (...overrides: string[]) =>
  listMissingTrainPaths(load(...overrides)).map(({ message }) => message.replaceAll(root, "<root>"));

describe("the start of a relative path", () => {
  it("in a file is that file's folder", () => {
    const { values, folder } = load();
    expect(resolvePath(folder, values.actor_rollout_ref.model.path)).toBe(join(task, "m.gguf"));
    expect(resolvePath(folder, values.data.train_files[0]!)).toBe(join(task, "rows.jsonl"));
    writeFileSync(
      join(task, "runs.yaml"),
      `${JSON.stringify({ actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "rows.jsonl" }, trainer: { default_local_dir: "out", rollout_data_dir: "r", resume_from_path: "out/x" } })}\n`,
    );
    expect(loadConfig(trainConfigSchema, join(task, "runs.yaml")).values.trainer).toMatchObject({
      default_local_dir: join(task, "out"),
      rollout_data_dir: join(task, "r"),
      resume_from_path: join(task, "out", "x"),
    });
  });

  it("in an override is the working directory: lists, other names of a key, modules and run folders too", () => {
    const { values, folder } = load(
      `${MODEL}=models/m.gguf`,
      "data.train_files=[a.jsonl, ../b.jsonl, /c.jsonl]",
      "+data.val_files='~/v.jsonl'",
      "data.tool_config_path=tools.yaml",
      "reward.custom_reward_function.path=reward.ts",
      "actor_rollout_ref.actor.policy_loss.loss_mode=./loss.ts#loss",
      "algorithm.adv_estimator=grpo",
      `${TURNS}.format="@me/parsers#parse"`,
      'reward_model.model=[{path: judge.gguf}, {path: "hf:a/b:Q8_0"}]',
      "trainer.default_local_dir=out",
    );
    expect(values.actor_rollout_ref.model.path).toBe(join(work, "models", "m.gguf"));
    expect(values.data.train_files).toEqual([join(work, "a.jsonl"), join(root, "b.jsonl"), "/c.jsonl"]);
    expect(values.data.val_files).toEqual([join(homedir(), "v.jsonl")]);
    expect(values.actor_rollout_ref.rollout.multi_turn.tool_config_path).toBe(join(work, "tools.yaml"));
    expect(values.custom_reward_function.path).toBe(join(work, "reward.ts"));
    expect(values.actor_rollout_ref.actor.policy_loss.loss_mode).toBe(`${join(work, "loss.ts")}#loss`);
    expect(values.algorithm.adv_estimator).toBe("grpo");
    expect(values.actor_rollout_ref.rollout.multi_turn.format).toBe("@me/parsers#parse");
    expect(values.reward_model.model.map(({ path }) => path)).toEqual([join(work, "judge.gguf"), "hf:a/b:Q8_0"]);
    expect(values.trainer.default_local_dir).toBe(join(work, "out"));
    // An absolute path of the program holds from any folder.
    expect(resolvePath(folder, values.actor_rollout_ref.model.path)).toBe(join(work, "models", "m.gguf"));
  });

  it("in a default is the working directory", () => {
    expect(load().values.trainer.default_local_dir).toBe("runs");
  });

  it("is known for every key with a path", () => {
    const leaves = [...listLeaves(trainConfigSchema), ...listLeaves(sftConfigSchema)];
    const holds = leaves.filter((key) => /(path|files?|dir|folder)$/.test(key));
    expect(holds.filter((key) => !(key in pathKeys))).toEqual([]);
    expect(holds.length).toBeGreaterThan(12);
  });
});

describe("errors about paths name the rule and the missing file", () => {
  it("of a config and of its overrides", () => {
    expect(missing()).toEqual([]);
    expect(missing(`${MODEL}=m.gguf`)).toEqual([
      `${MODEL}: does not exist\n  expected: a path that exists\n  received: <root>/work/m.gguf\n` +
        "  try: check the path: what is typed in a shell starts at the working directory, <root>/work",
    ]);
    writeFileSync(
      join(task, "wrong.yaml"),
      "actor_rollout_ref: { model: { path: models/m.gguf } }\ndata: { train_files: rows.jsonl }\n",
    );
    const loaded = loadConfig(trainConfigSchema, join(task, "wrong.yaml"));
    expect(listMissingTrainPaths(loaded)[0]!.message.replaceAll(root, "<root>")).toBe(
      `<root>/task/wrong.yaml: ${MODEL}: does not exist\n  expected: a path that exists\n` +
        "  received: models/m.gguf, that is <root>/task/models/m.gguf\n" +
        "  try: check the path: a path in a file starts at that file's folder, <root>/task; <root>/work/models/m.gguf is there",
    );
  });

  it("of a name on a hub, as other frameworks take it", () => {
    expect(missing(`${MODEL}=Qwen/Qwen3-0.6B`)[0]).toMatch(/named hf:Qwen\/Qwen3-0\.6B:<quantisation>$/);
    expect(missing("data.train_files=openai/gsm8k")[0]).toMatch(/named hf:openai\/gsm8k\/<config>\/<split>$/);
    expect(missing("data.train_files=data/none.jsonl")[0]).not.toContain("hf:");
  });

  it("of every file of the command, and of no other", () => {
    const none = [
      "data.val_files=[none.jsonl]",
      "custom_reward_function.path=none.ts",
      "algorithm.kl_penalty=./no.ts#k",
    ];
    expect(missing(...none)).toHaveLength(3);
    const unused = ["critic.model.path=none.gguf", "reward_model.model.path=none.gguf", "data.cache_dir=none"];
    expect(missing(...unused, `${TURNS}.enable=false`, `${TURNS}.tool_config_path=none.yaml`)).toEqual([]);
    expect(missing("data.train_files=hf:openai/gsm8k/main/train", `${MODEL}=hf:a/b:Q8_0`)).toEqual([]);
    expect(missing("data.custom_cls={path: loss.ts, name: X}", "data.train_files=elsewhere")).toHaveLength(1);
  });

  it.each([
    [
      "eval",
      evalCommand,
      [file, "--checkpoint", "runs/nope", "data.val_files=../task/rows.jsonl"],
      /^--checkpoint: does/,
    ],
    ["eval", evalCommand, [file, "--adapter", "a.gguf", "data.val_files=../task/rows.jsonl"], /^--adapter: does/],
    ["export", exportCommand, ["--run", "runs/nope", "--adapter", "a.gguf"], /^--run: does/],
    ["train", trainCommand, ["nope.yaml"], /^nope\.yaml: /],
    [
      "train",
      trainCommand,
      [file, "trainer.resume_mode=resume_path", "trainer.resume_from_path=r"],
      /^trainer\.resume/,
    ],
    ["check-env", checkEnvCommand, ["tools.yaml"], /^tools\.yaml: does/],
    ["check-env", checkEnvCommand, ["./tool.ts#Tool"], /^\.\/tool\.ts#Tool: does/],
  ])("of arguments of cria %s: %$", async (_, command, rawArgs, start) => {
    vi.spyOn(process, "cwd").mockReturnValue(work);
    await runCitty(command as typeof trainCommand, { rawArgs: [...rawArgs] });
    expect(process.exitCode).toBe(1);
    const message = output.stderr.slice(output.stderr.indexOf("error ") + 6);
    expect(message).toMatch(start);
    expect(message).toContain(work);
  });
});
