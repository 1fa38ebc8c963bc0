import { ConfigError, findNearest, formatValue } from "@cria/core";
import { getToolParser, isTool, toolParsers } from "@cria/tools";
import type { TaskDefinition } from "./task-definition.js";

/** Whether rows are files of rows. */
export function areFiles(rows: readonly unknown[] | string): rows is string | readonly string[] {
  return typeof rows === "string" || rows.every((row) => typeof row === "string");
}

type Check = readonly [isRight: (value: unknown) => boolean, expected: string];

const isFunction = (value: unknown) => typeof value === "function";
const isText = (value: unknown) => typeof value === "string" && value !== "";
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
const count: Check = [(value) => Number.isInteger(value) && Number(value) > 0, "a whole number of at least 1"];

const checks: Readonly<Record<keyof TaskDefinition<object>, Check>> = {
  rows: [
    (rows) =>
      isText(rows) ||
      (Array.isArray(rows) && rows.length > 0 && (rows.every(isText) || rows.every((r) => isObject(r)))),
    "at least one row, each an object; or a file of rows, or several",
  ],
  prompt: [isFunction, "a function of a row"],
  system: [isText, "a text"],
  agent: [isFunction, "a function of { row, model, signal }"],
  tools: [(tools) => isText(tools) || Array.isArray(tools), "a list of tools, or the path of a YAML file of tools"],
  interaction: [
    (value) =>
      isText(value) ||
      isFunction(value) ||
      (isObject(value) && isFunction((value as { generateResponse?: unknown }).generateResponse)),
    "interaction(...), a function that replies, or the path of a YAML file of interactions",
  ],
  reward: [(value) => isText(value) || isFunction(value), 'a function of an episode, or a path: "./reward.ts#score"'],
  truth: [isFunction, "a function of a row"],
  name: [isText, "a text"],
  toolFormat: [isText, "the name of a parser of tool calls"],
  maxTurns: count,
  maxPromptLength: count,
  maxResponseLength: count,
};

/**
 * Checks at run time what the types say, for callers in JavaScript, and what types cannot say. @throws ConfigError that
 * names the field.
 */
export function checkDefinition(definition: TaskDefinition<object>): void {
  if (!isObject(definition)) throw refuse("defineTask", "has no definition", "{ rows, reward, ... }", definition);
  for (const [key, value] of Object.entries(definition)) {
    if (!Object.hasOwn(checks, key)) {
      const nearest = findNearest(key, Object.keys(checks));
      throw new ConfigError("is not a field of a task", {
        code: "config/unknown-key",
        subject: `defineTask: ${key}`,
        expected: nearest === undefined ? Object.keys(checks).join(", ") : `perhaps "${nearest}"`,
        received: key,
        remedy: "correct or remove it",
      });
    }
    if (value === undefined) continue;
    const [isRight, expected] = checks[key as keyof TaskDefinition<object>];
    if (!isRight(value)) throw refuse(key, "has a wrong value", expected, value);
  }
  const { rows, tools, toolFormat } = definition;
  if (rows === undefined) throw refuse("rows", "is missing", checks.rows[1], rows);
  if (definition.agent !== undefined) checkAgent(definition);
  if (typeof tools === "object") checkNames(tools);
  if (toolFormat !== undefined && !toolFormat.includes("#")) checkFormat(toolFormat);
}

/** @throws ConfigError for what is no whole number of at least `least`. */
export function checkCount(subject: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return;
  throw new ConfigError("is no count", {
    code: "config/bad-value",
    subject,
    expected: `a whole number of at least ${least}`,
    received: preview(value),
  });
}

/** An agent says by itself what is asked and by whom. */
function checkAgent(definition: TaskDefinition<object>): void {
  for (const key of ["prompt", "system", "tools", "interaction"] as const)
    if (definition[key] !== undefined)
      throw refuse(key, "stands beside an agent", "a task of an agent, or one of tools and prompts", definition[key]);
}

/** Tools of the AI SDK and of servers are checked when they are opened. */
function checkNames(tools: readonly unknown[]): void {
  const seen = new Map<string, number>();
  for (const [i, tool] of tools.entries()) {
    if (!isTool(tool)) continue;
    const first = seen.get(tool.name);
    seen.set(tool.name, i);
    if (first === undefined) continue;
    throw new ConfigError(`has two tools named "${tool.name}"`, {
      code: "config/duplicate-tool",
      subject: "defineTask: tools",
      expected: "one tool of each name",
      received: `tools[${first}] and tools[${i}]`,
      remedy: "give each tool its own name",
    });
  }
}

function checkFormat(format: string): void {
  try {
    getToolParser(format);
  } catch (cause) {
    throw new ConfigError("is no format of tool calls", {
      code: "config/unknown-name",
      subject: "defineTask: toolFormat",
      expected: `${toolParsers.names().join(", ")}, or ./module.ts#parse`,
      received: format,
      remedy: "leave it out, and the model's chat template decides",
      cause,
    });
  }
}

function refuse(key: string, summary: string, expected: string, received: unknown): ConfigError {
  return new ConfigError(summary, {
    code: "config/bad-value",
    subject: key === "defineTask" ? key : `defineTask: ${key}`,
    expected,
    received: preview(received),
  });
}

/** A value as one line of text, also one that JSON cannot hold. */
export function preview(value: unknown): string {
  if (typeof value === "function") return `a function${value.name === "" ? "" : ` (${value.name})`}`;
  if (value instanceof Promise) return "a promise";
  try {
    const text = formatValue(value) ?? typeof value;
    return text.length > 200 ? `${text.slice(0, 200)}...` : text;
  } catch {
    return `a value of type ${typeof value}`;
  }
}
