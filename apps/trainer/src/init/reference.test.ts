import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { trainConfigSchema } from "@cria/trainer";
import {
  applyOverride,
  configFiles,
  findRenamed,
  listIgnoredKeys,
  listKeys,
  listRenamedKeys,
  makeReferenceFiles,
  setAsideForeignKeys,
  writeKey,
} from "@cria/trainer/internal";
import { Ajv, type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  listScripts,
  makeDefaultConfig,
  makeRequiredKeys,
  verlVersions,
} from "../../../../packages/trainer/src/testing/verl-configs.js";
import { scaffoldEnvironment } from "./scaffold-environment.js";

const packageFolder = join(import.meta.dirname, "..", "..");
const root = join(packageFolder, "..", "..");
const work = mkdtempSync(join(tmpdir(), "cria-schema-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strictTypes: false });
formats.default(ajv);
for (const keyword of ["deprecationMessage", "doNotSuggest"]) ajv.addKeyword(keyword);
const validators = new Map<string, ValidateFunction>();
function compile(schemaFile: string): ValidateFunction {
  const known = validators.get(schemaFile) ?? ajv.compile(JSON.parse(readFileSync(schemaFile, "utf8")));
  validators.set(schemaFile, known);
  return known;
}
const validateTrain = compile(join(packageFolder, "schema", "train.json"));

/** The schema in the first line of a YAML file. */
function findSchemaOf(file: string): string {
  const [, path] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(file, "utf8")) ?? [];
  expect(path, `${file} begins with its schema`).toBeDefined();
  return resolve(dirname(file), path!);
}

function findProblems(file: string, content = parse(readFileSync(file, "utf8"))): string[] {
  const validate = compile(findSchemaOf(file));
  validate(content);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const committed = execFileSync("git", ["ls-files", "*.yaml", "*.yml"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n")
  // Files below deploy/ belong to other programs, and are checked there.
  .filter((file) => !basename(file).startsWith("pnpm-") && !/^(\.|deploy\/)/.test(file));

describe("files that the build writes", () => {
  it.each(Object.keys(makeReferenceFiles()))("%s agrees with the code; `npm run build` writes it", (path) => {
    // Not toBe: printing the difference of long files takes seconds.
    expect(readFileSync(join(packageFolder, path), "utf8") === makeReferenceFiles()[path]).toBe(true);
  });

  // The build before a whole run writes the files: only git tells that a change of the code came without them.
  it.each(Object.keys(makeReferenceFiles()))("%s is in git as the build writes it: `git add` it", (path) => {
    const file = relative(root, join(packageFolder, path));
    const inGit = execFileSync("git", ["show", `:${file}`], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
    expect(inGit === makeReferenceFiles()[path]).toBe(true);
  });

  it("every key has a description, which is a sentence", () => {
    const keys = configFiles.flatMap(({ schema }) => listKeys(schema));
    expect(keys.length).toBeGreaterThan(200);
    expect(keys.filter(({ meaning }) => !/^[^ ].{8,}\.$/.test(meaning)).map(({ key }) => key)).toEqual([]);
  });
});

describe("YAML files name their schema, and hold to it", () => {
  it("exist", () => expect(committed.length).toBeGreaterThan(10));

  it.each(committed)("%s", (name) => {
    const file = join(root, name);
    expect(findProblems(file)).toEqual([]);
    // With one misspelt key it does not.
    const content = parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    for (const key of Object.keys(content)) {
      const { [key]: value, ...others } = content;
      expect(findProblems(file, { ...others, [`${key}x`]: value }), key).not.toEqual([]);
    }
  });

  it("files of `cria init`", async () => {
    const { folder } = await scaffoldEnvironment(join(work, "my-env"));
    const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
    expect(names).toHaveLength(3);
    for (const name of names) {
      const file = join(folder, name);
      expect(relative(folder, findSchemaOf(file))).toMatch(/^node_modules\/cria\/schema\/\w+\.json$/);
    }
    mkdirSync(join(work, "node_modules"));
    // Installed above it, as `npx cria init` in a project finds it.
    symlinkSync(packageFolder, join(work, "node_modules", "cria"));
    const { folder: inside } = await scaffoldEnvironment(join(work, "environments", "other"));
    for (const name of names) expect(findProblems(join(inside, name))).toEqual([]);
  });
});

describe("the schema of the sft config", () => {
  it("takes names of verl's supervised trainer", () => {
    const validate = compile(join(packageFolder, "schema", "sft.json"));
    const data = { train_files: "t.jsonl", multiturn: { enable: true, messages_key: "talk" } };
    expect(validate({ model: { partial_pretrain: "m.gguf" }, data }), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ model: {}, data })).toBe(false);
    expect(validate({ model: { partial_pretrained: "m.gguf" }, data })).toBe(false);
  });
});

describe("the schema of the train config", () => {
  const accepts = (...overrides: string[]) => {
    const raw = makeRequiredKeys();
    for (const override of overrides) applyOverride(raw, override);
    return validateTrain(raw);
  };

  it.each([
    "actor_rollout_ref.rollout.n=0",
    "actor_rollout_ref.rollout.n=many",
    "actor_rollout_ref.rollout.temprature=1",
    "actor_rollout_ref.actor.optim.betas=[0.9]",
    "actor_rollout_ref.actor.optim.betas=[0.9,1]",
    "data.truncation=up",
    "data.val_files=3",
    "trainer.logger=consol",
    "trainer.logger=[console,files]",
    "trainer.resume_from_path=true",
    "reward_model.model.base_url=none",
    "reward_model.model=[{path: m, judge: 1}]",
    "critic.loss_scale_factor=2",
    "algoritm.gamma=1",
  ])("refuses %s", (override) => expect(accepts(override)).toBe(false));

  it.each([
    "trainer.logger=console",
    "trainer.logger=[console,wandb]",
    "trainer.resume_from_path=false",
    "data.train_files=[a.jsonl,b.jsonl]",
    "data.seed=null",
    "reward_model.model={path: m}",
    "reward_model.model=[{path: m},{base_url: 'http://localhost/v1'}]",
    "actor_rollout_ref.rollout.max_num_seqs=1024",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096",
    "actor_rollout_ref.actor.fsdp_config.param_offload=true",
    "critic.loss_scale_factor=null",
    "critic._target_=verl.workers.Critic",
  ])("takes %s", (override) => expect(accepts(override), JSON.stringify(validateTrain.errors)).toBe(true));

  it("warns of keys without effect, and does not suggest other names", () => {
    const { properties } = validateTrain.schema as { properties: Record<string, { deprecationMessage?: string }> };
    expect(properties.ray_kwargs?.deprecationMessage).toMatch(/^has no effect: there is no Ray/);
    const own = listKeys(trainConfigSchema).map(({ key }) => key);
    const renamed = listRenamedKeys().filter((key) => own.includes(findRenamed(key)!));
    expect(renamed.length).toBeGreaterThan(20);
    for (const key of [...listIgnoredKeys(), ...renamed]) {
      const raw = makeRequiredKeys();
      writeKey(raw, key, null);
      expect(validateTrain(raw), `${key}: ${JSON.stringify(validateTrain.errors)}`).toBe(true);
    }
  });

  // Some 200 complete configs of other projects: editors and `cria train` accept the same files.
  it.each(verlVersions)("agrees with `cria train` on each script of verl %s, and on its defaults", (version) => {
    const configs = [...listScripts(version), ["defaults", () => makeDefaultConfig(version)] as const];
    expect(configs.length).toBeGreaterThan(30);
    for (const [name, make] of configs) {
      const raw = make();
      const { refusals } = setAsideForeignKeys(raw);
      const isRight = refusals.length === 0 && trainConfigSchema.safeParse(raw).success;
      expect([name, validateTrain(make())], JSON.stringify(validateTrain.errors)).toEqual([name, isRight]);
    }
  });
});
