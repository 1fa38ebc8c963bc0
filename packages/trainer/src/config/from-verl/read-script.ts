import { ConfigError } from "@cria/core";
import { OVERRIDE } from "../apply-override.js";
import { expandValue, expandWord, type Field, type Scope } from "./expand-word.js";
import { type Item, ShellReader, showWord, type Word } from "./read-words.js";

/** The training command of a script. */
export interface ScriptReading {
  /** Overrides in order, as `key=value`. */
  overrides: Field[];
  /** The training program: the module after -m, or a Python file. */
  program: string | null;
  /** Values of Hydra's --config-name and --config-path; null if absent. */
  configName: Field | null;
  configPath: Field | null;
  /** Notes for the reader on how the script was interpreted. */
  notes: string[];
}

export interface ReadScriptOptions {
  /** Overrides that replace "$@". */
  args?: readonly string[];
  env?: Record<string, string | undefined>;
}

interface Command {
  fields: Field[];
  line: number;
  /** True inside an if, a loop or a function, which a shell might skip. */
  nested: boolean;
}

const OPENS = new Set(["if", "for", "while", "until", "case", "select"]);
const CLOSES = new Set(["fi", "done", "esac"]);

/**
 * Reads the overrides of the training command in a shell script, without running it. @throws ConfigError if there is
 * none.
 *
 * Splitting the text into words would not suffice: 115 of verl's 131 example scripts, among them all newer ones, use
 * variables in their commands. Hydra prints a composed config only where verl and its dependencies are installed.
 */
export function readScript(script: string, file: string, options: ReadScriptOptions = {}): ScriptReading {
  const { args = [], env = {} } = options;
  const scope: Scope = {
    variables: new Map(),
    undecided: new Map(),
    env,
    args,
    doubtful: new Set(),
    borrowed: new Set(),
  };
  const commands = new Interpreter(scope).run(ShellReader.read(script));
  const trainings = commands.filter(
    ({ fields }) => fields.some(isOverride) && !/^(echo|printf)$/.test(fields[0]!.text),
  );
  const training = trainings.find(({ nested }) => !nested) ?? trainings[0];
  if (!training)
    throw new ConfigError("has no command that trains", {
      code: "config/no-command",
      subject: file,
      expected: "python3 -m verl.trainer.main_ppo key.path=value ...",
      remedy: "give the file that has the overrides, or a YAML config",
    });
  const program = findProgram(training.fields);
  // Names of models and experiments may contain "sft" in any training.
  if (program && /(^|[^a-z])sft([^a-z]|$)/i.test(program.replace(/\.py$/, "").split(/[./]/).at(-1)!))
    throw new ConfigError("teaches by example, which is another config", {
      code: "config/not-supported",
      subject: `${file}: ${program}`,
      expected: "a script of reinforcement learning",
      remedy: "cria sft --help",
    });
  const notes: string[] = [];
  if (training.nested) notes.push(`the command on line ${training.line} stands in an if, a loop or a function`);
  for (const { line } of trainings.filter((other) => other !== training))
    notes.push(`the command on line ${line} is left out: one config is one training`);
  for (const name of scope.doubtful)
    notes.push(`$${name} ${scope.undecided.get(name)}; its value before that is taken`);
  if (scope.borrowed.size > 0) notes.push(`from environment variables: ${[...scope.borrowed].join(", ")}`);
  const overrides = training.fields.filter(isOverride);
  // If the script has no "$@", they come last, as if appended to the command.
  const given = new Set(overrides.map(({ text }) => text));
  for (const text of args) if (!given.has(text)) overrides.push({ text, unknown: [] });
  const configName = findOption(training.fields, ["config-name", "cn"]);
  const configPath = findOption(training.fields, ["config-path", "cp", "config-dir", "cd"]);
  return { overrides, program, configName, configPath, notes };
}

function findProgram(fields: readonly Field[]): string | null {
  const flag = fields.findIndex(({ text }) => text === "-m");
  if (flag >= 0) return fields[flag + 1]?.text ?? null;
  return fields.find(({ text }) => text.endsWith(".py"))?.text ?? null;
}

/** Value of an option of Hydra, as `--name=value`, `--name value` or `-name value`; the last one wins. */
function findOption(fields: readonly Field[], names: readonly string[]): Field | null {
  let found: Field | null = null;
  for (const [i, { text, unknown }] of fields.entries()) {
    const [, name, , value] = /^--?([a-z-]+)(=(.*))?$/s.exec(text) ?? [];
    if (name === undefined || !names.includes(name)) continue;
    found = value === undefined ? (fields[i + 1] ?? null) : { text: value, unknown };
  }
  return found;
}

function isOverride({ text }: Field): boolean {
  const match = OVERRIDE.exec(text);
  if (!match || (match[3] === "" && match[1] !== "~")) return false;
  return match[2]!.includes(".") || match[1] !== "";
}

/** Follows assignments from top to bottom. Conditional assignments are not evaluated, only remembered. */
class Interpreter {
  private readonly commands: Command[] = [];
  /** Open blocks: keywords, and "{" for functions. */
  private readonly open: string[] = [];

  constructor(private readonly scope: Scope) {}

  run(items: readonly Item[]): Command[] {
    let at = 0;
    while (at < items.length) {
      const end = items.findIndex((item, i) => i >= at && item.kind === "separator");
      const stop = end < 0 ? items.length : end;
      const isFunction = items[stop]?.kind === "separator" && showSeparator(items[stop]) === "(" && stop === at + 1;
      if (isFunction && showSeparator(items[stop + 1]) === ")") {
        at = this.openFunction(items, stop + 2);
        continue;
      }
      const before = showSeparator(items[at - 1]);
      this.runCommand(items.slice(at, stop), before === "&&" || before === "||");
      at = stop + 1;
    }
    return this.commands;
  }

  /** Handles `name() {`: the body counts as nested until the closing brace. */
  private openFunction(items: readonly Item[], at: number): number {
    let next = at;
    while (showSeparator(items[next]) === "\n") next++;
    const item = items[next];
    if (item?.kind !== "word" || showWord(item.word) !== "{") return next;
    this.open.push("{");
    return next + 1;
  }

  private runCommand(items: readonly Item[], isConditional: boolean): void {
    let rest = items;
    for (;;) {
      const [first] = rest;
      if (first?.kind !== "word") break;
      const word = showWord(first.word);
      if (word === "function") {
        this.open.push("{");
        return;
      }
      if (OPENS.has(word)) {
        this.open.push(word);
        this.markLoop(word, rest);
        // `if`, `while` and `until` are followed by a command; `for`, `case` and `select` by names and values.
        if (word === "for" || word === "case" || word === "select") return;
      } else if (CLOSES.has(word)) this.open.pop();
      else if (word === "}" && this.open.at(-1) === "{") this.open.pop();
      else if (!/^(then|else|elif|do|!|\{|export|declare|local|readonly|typeset|-[a-zA-Z]+|time|exec)$/.test(word))
        break;
      rest = rest.slice(1);
    }
    const words = rest.filter((item) => item.kind === "word");
    const assignments = rest.filter((item) => item.kind === "assignment");
    // Assignments before a command only set its environment variables.
    if (words.length === 0) for (const item of assignments) this.assign(item, isConditional);
    if (words.length > 0) this.addCommand(words);
  }

  private addCommand(words: readonly { word: Word; line: number }[]): void {
    const fields = words.flatMap(({ word }) => expandWord(word, this.scope));
    if (fields.length > 0) this.commands.push({ fields, line: words[0]!.line, nested: this.open.length > 0 });
  }

  private markLoop(word: string, items: readonly Item[]): void {
    const [, name] = items;
    if (word === "for" && name?.kind === "word") this.remember(showWord(name.word), "for", name.line);
  }

  private remember(name: string, word: string, line: number): void {
    const kind = { if: "an if", case: "a case", "&&": "a condition" }[word] ?? "a loop";
    this.scope.undecided.set(name, `is set in ${kind} (line ${line}), which is not followed`);
  }

  private assign(item: Extract<Item, { kind: "assignment" }>, isConditional: boolean): void {
    const { name, append, value, list, line } = item;
    const inside = this.open.at(-1) ?? (isConditional ? "&&" : undefined);
    if (inside !== undefined) {
      // Variables in a function are probably local.
      if (inside !== "{") this.remember(name, inside, line);
      return;
    }
    const { variables, undecided } = this.scope;
    const before = append ? (variables.get(name) ?? []) : [];
    if (!append) undecided.delete(name);
    if (list) {
      variables.set(name, [...before, ...list.flatMap((word) => expandWord(word, this.scope))]);
      return;
    }
    const field = expandValue(value ?? [], this.scope);
    const [first] = before;
    const text = `${first?.text ?? ""}${field.text}`;
    variables.set(name, [{ text, unknown: [...(first?.unknown ?? []), ...field.unknown] }]);
  }
}

function showSeparator(item: Item | undefined): string | null {
  return item?.kind === "separator" ? item.text : null;
}
