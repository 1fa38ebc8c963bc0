import type { ConfigError } from "@cria/core";
import { type CommandDef, defineCommand } from "citty";
import { describe, expect, it } from "vitest";
import { checkCommandLine, isUsageError } from "./check-command-line.js";
import { configCommand } from "./config.js";
import { dataCommand } from "./data.js";
import { initCommand } from "./init.js";
import { trainCommand } from "./train.js";

const program = defineCommand({
  meta: { name: "cria" },
  subCommands: { train: trainCommand, init: initCommand, config: configCommand, data: dataCommand },
}) as CommandDef;

/** The refusal of these words; null for valid ones. */
function refuse(...words: string[]): ConfigError | null {
  try {
    checkCommandLine(program, words);
    return null;
  } catch (error) {
    expect(isUsageError(error)).toBe(true);
    return error as ConfigError;
  }
}

describe("the words of a command line", () => {
  it.each([
    [["trian"], "unknown-command", { subject: "cria trian", expected: 'perhaps "cria train"' }],
    [["trian", "--help"], "unknown-command", { expected: 'perhaps "cria train"' }],
    [["fly"], "unknown-command", { expected: "train, init, config, data" }],
    [["data", "gsm8"], "unknown-command", { subject: "cria data gsm8", expected: 'perhaps "cria data gsm8k"' }],
    [["--json", "train", "c.yaml"], "unknown-option", { remedy: expect.stringContaining("cria <command> --json") }],
    [["--hlep"], "unknown-option", { expected: "perhaps --help" }],
    [["init", "--modle", "m.gguf"], "unknown-option", { subject: "cria init --modle", expected: "perhaps --model" }],
    [["train", "c.yaml", "--jsno"], "unknown-option", { expected: "perhaps --json" }],
    [["train", "--jsno"], "unknown-option", { expected: "perhaps --json" }],
    [["train", "c.yaml", "-x"], "unknown-option", { subject: "cria train -x" }],
    [
      ["train", "c.yaml", "--trainer.total_epochs=3"],
      "unknown-option",
      { remedy: expect.stringContaining("key.path=value") },
    ],
    [
      ["train"],
      "missing-argument",
      { subject: "cria train <config>", expected: expect.stringMatching(/^YAML config/) },
    ],
  ] as const)("%j", (words, code, fields) =>
    expect(refuse(...words)).toMatchObject({ code: `config/${code}`, ...fields }),
  );

  it.each([
    [],
    ["--help"],
    ["--version"],
    ["train", "--help"],
    ["train", "c.yaml", "a.b=1", "--json", "--verbose"],
    ["train", "c.yaml", "--no-json"],
    ["init", "x", "--model", "m.gguf", "--from-mcp=npx server"],
    ["config"],
    ["config", "--from-verl", "run.sh", "a=1"],
    ["config", "--fromVerl", "run.sh"],
  ])("%j is valid", (...words) => expect(refuse(...words)).toBeNull());
});
