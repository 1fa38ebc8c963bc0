import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openTraining } from "../run/training.js";
import { loadConfig } from "./load-config.js";
import { trainConfigSchema } from "./train-config.js";

/** The error with this code, about a subject whose name holds the text. */
const refusal = (code: string, subject: string, more: object = {}) =>
  expect.objectContaining({ code, subject: expect.stringContaining(subject), ...more });

const example = join(import.meta.dirname, "..", "..", "..", "..", "examples", "calculator", "config.yaml");
const folder = mkdtempSync(join(tmpdir(), "cria-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const load = (...overrides: string[]) => loadConfig(trainConfigSchema, example, overrides).values;

describe("config", () => {
  it("fills in defaults and applies overrides, which are YAML", () => {
    const config = load(
      "trainer.total_training_steps=3",
      "actor_rollout_ref.actor.use_kl_loss=true",
      "trainer.logger=[file]",
    );
    expect(config.trainer).toMatchObject({ total_training_steps: 3, logger: ["file"] });
    expect(config.actor_rollout_ref.actor).toMatchObject({ use_kl_loss: true, kl_loss_coef: 0.001, clip_ratio_c: 3 });
    expect(config.actor_rollout_ref.rollout.multi_turn).toMatchObject({ max_parallel_calls: 1, format: "hermes" });
  });

  it("an unknown key names the nearest known one", () => {
    expect(() => load("actor_rollout_ref.rollout.temprature=1")).toThrow(
      refusal("config/unknown-key", "rollout.temprature", { expected: expect.stringContaining("rollout.temperature") }),
    );
    expect(() => load("algoritm.adv_estimator=grpo")).toThrow(
      refusal("config/unknown-key", "algoritm", { expected: expect.stringContaining('"algorithm"') }),
    );
    expect(() => load("trainer.zzzzzzzzzzzz=1")).toThrow(refusal("config/unknown-key", "trainer.zzzzzzzzzzzz"));
  });

  it("a wrong value names its place, the expected and the received value", () => {
    expect(() => load("actor_rollout_ref.rollout.n=0")).toThrow(
      refusal("config/bad-value", "rollout.n", { received: "0" }),
    );
    expect(() => load("data.truncation=up")).toThrow(refusal("config/bad-value", "data.truncation"));
    expect(() => load("nonsense")).toThrow(refusal("config/bad-override", "nonsense"));
  });

  it("names the line of a wrong value, or the command line", () => {
    const file = join(folder, "lines.yaml");
    const refuse = (text: string, ...overrides: string[]) => {
      writeFileSync(file, text);
      try {
        loadConfig(trainConfigSchema, file, overrides);
      } catch (error) {
        return error;
      }
      return null;
    };
    const place = (where: string, key: string) => ({ subject: `${file}${where}: ${key}` });
    const rest = "actor_rollout_ref: { model: { path: m.gguf } }\ndata:\n  train_files: t.jsonl\n";
    const unknown = { code: "config/unknown-key" };
    const wrong = { code: "config/bad-value" };
    expect(refuse(`${rest}  # here\n  sed: 1\n`)).toMatchObject({ ...unknown, ...place(", line 5", "data.sed") });
    expect(refuse(`${rest}  seed: x\n`)).toMatchObject({ ...wrong, ...place(", line 4", "data.seed") });
    expect(refuse(`${rest}  seed: 1\n`, "data.seed=x")).toMatchObject(place(", from the command line", "data.seed"));
    expect(refuse(`${rest}trainer:\n  logger:\n    - file\n    - fil\n`)).toMatchObject(
      place(", line 7", "trainer.logger.1"),
    );
    expect(refuse(`${rest}trainer: { logger: fil }\n`)).toMatchObject(place(", line 4", "trainer.logger.0"));
    expect(refuse(`${rest}trainr: {}\nalgoritm: {}\n`)).toMatchObject({
      ...unknown,
      received: '\n    trainr (line 4), perhaps "trainer"\n    algoritm (line 5), perhaps "algorithm"',
    });
    expect(refuse(`${rest}skip: { rollout: { enable: true } }\n`)).toMatchObject(
      place(", line 4", "skip.rollout.enable"),
    );
    // Not written at all, and the number of the key that was meant is not known.
    expect(refuse("data: { train_files: t.jsonl }\n")).toMatchObject({ ...wrong, ...place("", "actor_rollout_ref") });
  });

  it.each([
    ["an alias to itself", "trainer: {total_training_steps: &a [*a]}"],
    ["an alias to what holds it", "trainer: &a\n  total_training_steps: *a"],
    ["a tag that nobody resolves", "trainer: {total_training_steps: !mine 3}"],
    ["thousands of levels", `trainer: {total_training_steps: ${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
  ])("%s is an error that names the file", (_, text) => {
    const file = join(folder, "hostile.yaml");
    writeFileSync(file, text);
    expect(() => loadConfig(trainConfigSchema, file)).toThrow(
      expect.objectContaining({ code: "config/unreadable", subject: file }),
    );
  });

  it("files that are missing or not YAML", () => {
    expect(() => loadConfig(trainConfigSchema, join(folder, "none.yaml"))).toThrow(
      refusal("config/unreadable", "none.yaml"),
    );
    const bad = join(folder, "bad.yaml");
    writeFileSync(bad, "a: [1,");
    expect(() => loadConfig(trainConfigSchema, bad)).toThrow(refusal("config/unreadable", "bad.yaml"));
    writeFileSync(bad, "- 1");
    expect(() => loadConfig(trainConfigSchema, bad)).toThrow(
      refusal("config/bad-file", "bad.yaml", { received: "a list" }),
    );
  });
});

describe("opening a training", () => {
  const open = (...overrides: string[]) => {
    const { values, folder: base } = loadConfig(trainConfigSchema, example, overrides);
    return openTraining(values, base);
  };

  it("refuses a malformed row, naming file, line and column", async () => {
    const [first] = readFileSync(join(example, "..", "data", "train.jsonl"), "utf8").split("\n");
    const rows = join(folder, "rows.jsonl");
    writeFileSync(rows, `${first}\n{"data_source":"x","prompt":[{"role":"robot","content":"hi"}]}\n`);
    await expect(open(`data.train_files=${rows}`)).rejects.toThrow(
      refusal("data/bad-row", 'rows.jsonl, line 2, column "prompt.0.role"'),
    );
    writeFileSync(rows, `${first}\n{"data_source":`);
    await expect(open(`data.train_files=${rows}`)).rejects.toThrow(refusal("data/bad-row", "rows.jsonl, line 2"));
    await expect(open("data.train_files=data/none.jsonl")).rejects.toThrow(refusal("data/unreadable", "none.jsonl"));
    await expect(open("data.train_files=config.yaml")).rejects.toThrow(refusal("data/unknown-format", "config.yaml"));
  });

  it("refuses unknown names before it loads a model", async () => {
    await expect(open("actor_rollout_ref.rollout.multi_turn.format=xml")).rejects.toThrow(
      refusal("config/unknown-name", "multi_turn.format", { received: "xml" }),
    );
    await expect(open("actor_rollout_ref.rollout.multi_turn.tool_config_path=none.yaml")).rejects.toThrow(
      refusal("config/unreadable", "none.yaml"),
    );
    await expect(open("actor_rollout_ref.model.path=none.gguf")).rejects.toThrow(
      refusal("engine/file-not-found", "none.gguf"),
    );
  });
});
