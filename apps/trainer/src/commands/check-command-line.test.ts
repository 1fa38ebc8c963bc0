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

/** What is said of these words; "" where all is well. */
function refuse(...words: string[]): string {
  try {
    checkCommandLine(program, words);
    return "";
  } catch (error) {
    expect(isUsageError(error)).toBe(true);
    return (error as Error).message;
  }
}

describe("the words of a command line", () => {
  it.each([
    [["trian"], /^cria trian: is not a command\n {2}expected: perhaps "cria train"/],
    [["trian", "--help"], /perhaps "cria train"/],
    [["fly"], /expected: train, init, config, data/],
    [["data", "gsm8"], /^cria data gsm8: is not a command\n {2}expected: perhaps "cria data gsm8k"/],
    [["--json", "train", "c.yaml"], /options stand after the command: cria <command> --json/],
    [["--hlep"], /expected: perhaps --help/],
    [["init", "--modle", "m.gguf"], /^cria init --modle: is not an option[\s\S]*perhaps --model/],
    [["train", "c.yaml", "--jsno"], /perhaps --json/],
    [["train", "--jsno"], /perhaps --json/],
    [["train", "c.yaml", "-x"], /^cria train -x: is not an option/],
    [["train", "c.yaml", "--trainer.total_epochs=3"], /given as key\.path=value, without dashes/],
    [["train"], /^cria train <config>: is missing\n {2}expected: YAML config/],
  ] as const)("%j", (words, message) => expect(refuse(...words)).toMatch(message));

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
  ])("%j: nothing is wrong", (...words) => expect(refuse(...words)).toBe(""));
});
