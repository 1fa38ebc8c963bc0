import { ConfigError } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import { type ArgsDef, type CommandDef, parseArgs } from "citty";

const HELP = ["--help", "-h"];
const PROGRAM_OPTIONS = [...HELP, "--version", "-v"];

/** Codes of errors about the words of a command line: the exit code is 2. */
const USAGE_CODES = [
  "config/unknown-command",
  "config/unknown-option",
  "config/missing-argument",
  "config/unknown-argument",
];

export function isUsageError(error: unknown): boolean {
  return error instanceof ConfigError && USAGE_CODES.includes(error.code);
}

/**
 * Checks the words before any of them has an effect: unknown commands and options, and missing arguments.
 * @param words after the program's name.
 * @param name of the program, for errors.
 * @throws ConfigError for which `isUsageError` holds.
 */
export function checkCommandLine(command: CommandDef, words: readonly string[], name = "cria"): void {
  const subCommands = command.subCommands as Record<string, CommandDef> | undefined;
  const [first] = words;
  if (!subCommands) checkWords((command.args ?? {}) as ArgsDef, words, name);
  // The program without a command, or its own options: the library handles them.
  else if (first === undefined || PROGRAM_OPTIONS.includes(first)) return;
  else if (first.startsWith("-"))
    throw refuseOption(first, ["--help", "--version"], name, `options follow the command: ${name} <command> ${first}`);
  else if (subCommands[first]) checkCommandLine(subCommands[first], words.slice(1), `${name} ${first}`);
  else throw refuseCommand(first, Object.keys(subCommands), name);
}

function refuseCommand(word: string, known: readonly string[], name: string): ConfigError {
  const nearest = findNearest(word, known);
  return new ConfigError("is not a command", {
    code: "config/unknown-command",
    subject: `${name} ${word}`,
    expected: nearest ? `perhaps "${name} ${nearest}"` : known.join(", "),
    remedy: `see ${name} --help`,
  });
}

function checkWords(args: ArgsDef, words: readonly string[], name: string): void {
  if (words.some((word) => HELP.includes(word))) return;
  const entries = Object.entries(args);
  const optional = Object.fromEntries(entries.map(([key, arg]) => [key, { ...arg, required: false }])) as ArgsDef;
  const parsed = parseArgs<ArgsDef>([...words], optional) as Record<string, unknown> & { _: string[] };
  const options = entries.filter(([, { type }]) => type !== "positional").map(([key]) => key);
  // The parser also gives each option under its camelCase name.
  const known = new Set([...entries.map(([key]) => key), ...options.map(toCamelCase), "_"]);
  for (const key of Object.keys(parsed))
    if (!known.has(key))
      throw refuseOption(
        key.length === 1 ? `-${key}` : `--${key}`,
        options.map((each) => `--${each}`),
        name,
      );
  for (const [key, { type, required, description }] of entries) {
    const isRequired = type === "positional" ? required !== false : required === true;
    if (!isRequired || (parsed[key] !== undefined && parsed[key] !== "")) continue;
    throw new ConfigError("is missing", {
      code: "config/missing-argument",
      subject: `${name} ${type === "positional" ? `<${key}>` : `--${key}`}`,
      expected: description,
      remedy: `see ${name} --help`,
    });
  }
}

function refuseOption(option: string, known: readonly string[], name: string, remedy?: string): ConfigError {
  const nearest = findNearest(option, known);
  return new ConfigError("is not an option of this command", {
    code: "config/unknown-option",
    subject: `${name} ${option}`,
    expected: nearest ? `perhaps ${nearest}` : known.join(", "),
    remedy: remedy ?? `see ${name} --help; keys of a config are given as key.path=value, without dashes`,
  });
}

function toCamelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
