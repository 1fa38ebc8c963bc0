import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTask, trainConfigSchema } from "@cria/trainer";
import { checkConfig } from "@cria/trainer/internal";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { version } from "../version.js";
import { findUserCode } from "./find-user-code.js";
import { hashFolder } from "./hash-folder.js";
import { identifyUserCode } from "./identify-user-code.js";
import { toPortableConfig } from "./portable-config.js";

const root = mkdtempSync(join(tmpdir(), "cria-user-code-"));
afterAll(() => rmSync(root, { recursive: true }));
let count = 0;
let folder: string;

/** A folder of a tool and its config, as `cria init` writes it. */
beforeEach(() => {
  folder = join(root, `env-${count++}`);
  write("tool.ts", "export const myTool = 1;");
  write("tools.yaml", "tools: [{ class_name: ./tool.ts#myTool }]");
  write("config.yaml", "actor_rollout_ref:\n  actor: {}\n");
  write("rows.json", "[]");
});

function write(name: string, content: string, at = folder): void {
  mkdirSync(join(at, name, ".."), { recursive: true });
  writeFileSync(join(at, name), content);
}

function makeConfig(rollout: object = { multi_turn: { tool_config_path: "tools.yaml" } }, actor: object = {}) {
  const raw = {
    data: { train_files: "rows.json" },
    actor_rollout_ref: { model: { path: "model.gguf" }, rollout, actor },
    trainer: { default_local_dir: join(folder, "runs") },
  };
  return checkConfig(trainConfigSchema, raw, "test");
}

const identify = (config = makeConfig()) => identifyUserCode(config, folder);

describe("user code", () => {
  it("of sources is named by their hash, and found in a folder or in one of its folders", async () => {
    const id = await identify();
    expect(id).toEqual({ kind: "folder", hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await findUserCode(id, makeConfig(), { folder })).toEqual({ folder });
    const parent = join(root, "parent");
    cpSync(folder, join(parent, "copy"), { recursive: true });
    expect(await findUserCode(id, makeConfig(), { folder: parent })).toEqual({ folder: join(parent, "copy") });
    expect(await findUserCode(id, makeConfig(), { folder: join(parent, "nothing") })).toMatch(/^no user code/);
  });

  it.each([
    ["a source", "tool.ts", "export const myTool = 2;"],
    ["a setting", "tools.yaml", "tools: []"],
    ["another source below it", "lib/deep/more.py", ""],
    ["a prompt", "prompts/system.md", "Be kind."],
  ])("is another with %s changed", async (_, name, content) => {
    const before = await identify();
    write(name, content);
    expect(await identify()).not.toEqual(before);
  });

  it.each([
    ["the training's config", "config.yaml", "actor_rollout_ref: { actor: { optim: { lr: 1 } } }"],
    ["its config as JSON", "other.json", '{ "trainer": {}, "actor_rollout_ref": {} }'],
    ["its rows", "rows.json", "[1]"],
    ["its runs", "runs/cria/default/notes.json", "{}"],
    ["a package", "node_modules/x/index.js", "1"],
    ["what is hidden", ".git/config.json", "{}"],
    ["a text about it", "README.md", "# Mine"],
    ["a lock file", "package-lock.json", "{}"],
    ["a model", "model.gguf", "x"],
    ["data", "data.jsonl", "{}"],
    ["a large file", "large.json", `"${"x".repeat(5_000_000)}"`],
  ])("is the same with %s changed", async (_, name, content) => {
    const before = await identify();
    write(name, content);
    expect(await identify()).toEqual(before);
  });

  it("is another if only names and contents together are the same", async () => {
    write("ab.txt", "c");
    const before = await identify();
    rmSync(join(folder, "ab.txt"));
    write("a.txt", "bc");
    expect(await identify()).not.toEqual(before);
  });

  it("with links goes in no circle, and reads the files that they show", async () => {
    const before = await identify();
    symlinkSync(folder, join(folder, "circle"));
    symlinkSync(join(folder, "nothing"), join(folder, "lost.ts"));
    expect(await identify()).toEqual(before);
    symlinkSync(join(folder, "tool.ts"), join(folder, "alias.ts"));
    expect(await identify()).not.toEqual(before);
  });

  it("with too many sources is refused", async () => {
    for (let i = 0; i < 2001; i++) write(`many/${i}.txt`, "");
    await expect(hashFolder(join(folder, "many"))).rejects.toMatchObject({
      code: "cluster/user-code-size",
      received: "more than 2000 sources",
    });
  });

  it("without code of the user is the same everywhere", async () => {
    const config = makeConfig({});
    const id = await identify(config);
    expect(id).toEqual({ kind: "package", name: "cria", version, folder: "" });
    expect(await findUserCode(id, config, { folder: root })).toEqual({ folder: root });
  });

  it.each([
    ["tools", { multi_turn: { tool_config_path: "../tools.yaml" } }, {}],
    ["a parser", { multi_turn: { format: "/somewhere/parse.ts#parse" } }, {}],
    ["a module of Node", { multi_turn: { format: "node:child_process#execSync" } }, {}],
    ["a loss", {}, { policy_loss: { loss_mode: "../../loss.ts#loss" } }],
  ])("does not reach outside of its folder for %s", async (_, rollout, actor) => {
    await expect(identify(makeConfig(rollout, actor))).rejects.toMatchObject({ code: "cluster/outside-user-code" });
  });

  it("has a config whose paths hold on other machines", () => {
    const tools = join(folder, "tools.yaml");
    const config = makeConfig(
      { multi_turn: { tool_config_path: tools, interaction_config_path: "/elsewhere/i.yaml" } },
      { policy_loss: { loss_mode: `${folder}/deep/loss.ts#loss` }, loss_agg_mode: "token-mean" },
    );
    const { rollout, actor, model } = toPortableConfig(config, folder).actor_rollout_ref;
    expect(rollout.multi_turn.tool_config_path).toBe("./tools.yaml");
    expect(rollout.multi_turn.interaction_config_path).toBe("/elsewhere/i.yaml");
    expect(actor.policy_loss.loss_mode).toBe("./deep/loss.ts#loss");
    expect([actor.loss_agg_mode, model.lora_adapter_path]).toEqual(["token-mean", null]);
    expect(config.actor_rollout_ref.rollout.multi_turn.tool_config_path).toBe(tools);
  });

  it("in a package is named by its version, and found where that is installed", async () => {
    const home = join(root, "app", "node_modules", "@me", "env");
    write("package.json", '{ "name": "@me/env", "version": "1.2.3" }', home);
    cpSync(folder, join(home, "tasks", "one"), { recursive: true });
    // It only declares its modules as ES modules.
    write("package.json", '{ "type": "module" }', join(home, "tasks"));
    const at = join(home, "tasks", "one");
    const id = await identifyUserCode(makeConfig(), at);
    expect(id).toEqual({ kind: "package", name: "@me/env", version: "1.2.3", folder: "tasks/one" });
    const find = (change: object, from = join(root, "app", "below")) =>
      findUserCode({ ...id, ...change } as typeof id, makeConfig(), { folder: from });
    expect(await find({})).toEqual({ folder: at });
    expect(await find({ version: "2.0.0" })).toMatch(
      /no package @me\/env@2.0.0 .*: 1.2.3 is installed; npm install @me\/env@2/,
    );
    expect(await find({}, root)).toMatch(/it is not installed/);
    expect(await find({ folder: "../../.." })).toMatch(/lies outside of/);
    expect(await find({ name: "../../etc" })).toMatch(/no package has the name/);
  });

  it("in memory is found by its name", async () => {
    const named = defineTask({ name: "sums", rows: ["a"], reward: () => 1 });
    const nameless = defineTask({ rows: ["a"], reward: () => 1 });
    const id = await identifyUserCode(makeConfig({}), folder, named);
    expect(id).toEqual({ kind: "task", name: "sums" });
    expect(await identifyUserCode(makeConfig({}), folder, nameless)).toEqual({ kind: "task", name: "task" });
    const find = (tasks: (typeof named)[]) => findUserCode(id, makeConfig({}), { folder, tasks });
    expect(await find([nameless, named])).toEqual({ folder, task: named });
    expect(await find([nameless])).toBe(
      'no task "sums" in memory ("task"): start a worker from the program that defines it',
    );
  });
});
