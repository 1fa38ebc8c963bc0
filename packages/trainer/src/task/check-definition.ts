import { ConfigError } from "@cria/core";
import {
  type ChecksOf,
  checkOptions,
  isFunction,
  isObject,
  isText,
  optionChecks,
  refuseOption,
} from "@cria/core/internal";
import { isTool, isToolFormatName, listToolFormatNames } from "@cria/tools/light";
import type { TaskDefinition } from "./task-definition.js";

/** True if the rows are files of rows. */
export function areFiles(rows: readonly unknown[] | string): rows is string | readonly string[] {
  return typeof rows === "string" || rows.every((row) => typeof row === "string");
}

const { count, text } = optionChecks;

/** Checks of each field of a task. */
export const taskChecks: ChecksOf<Required<TaskDefinition<object>>> = {
  rows: [
    (rows) =>
      isText(rows) ||
      (Array.isArray(rows) && rows.length > 0 && (rows.every(isText) || rows.every((r) => isObject(r)))),
    "at least one row, each an object; or a file of rows, or several",
  ],
  prompt: [isFunction, "a function of a row"],
  system: text,
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
  samples: [isFunction, "a function of a row"],
  name: text,
  toolFormat: [isText, "the name of a parser of tool calls"],
  maxTurns: count,
  maxPromptLength: count,
  maxResponseLength: count,
};

/**
 * Checks at run time what the types state, for callers in JavaScript, and what types cannot express. @throws
 * ConfigError that names the field.
 */
export function checkDefinition(definition: TaskDefinition<object>): void {
  checkOptions("defineTask", definition, taskChecks);
  const { rows, tools, toolFormat } = definition;
  if (rows === undefined) throw refuse("rows", "is missing", taskChecks.rows[1], rows);
  if (definition.agent !== undefined) checkAgent(definition);
  if (typeof tools === "object") checkNames(tools);
  if (toolFormat !== undefined && !toolFormat.includes("#")) checkFormat(toolFormat);
}

/** @throws ConfigError unless it is a whole number of at least `least`. */
export function checkCount(subject: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return;
  throw refuseOption(subject, "is no count", `a whole number of at least ${least}`, value);
}

/** An agent makes its own prompts, and needs no user. */
function checkAgent(definition: TaskDefinition<object>): void {
  for (const key of ["prompt", "system", "tools", "interaction"] as const)
    if (definition[key] !== undefined)
      throw refuse(key, "stands beside an agent", "a task of an agent, or one of tools and prompts", definition[key]);
}

/** AI SDK tools and servers are checked when they are opened. */
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
  if (isToolFormatName(format)) return;
  throw new ConfigError("is no format of tool calls", {
    code: "config/unknown-name",
    subject: "defineTask: toolFormat",
    expected: `${listToolFormatNames().join(", ")}, or ./module.ts#parse`,
    received: format,
    remedy: "leave it out, and the model's chat template decides",
  });
}

const refuse = (key: string, summary: string, expected: string, received: unknown) =>
  refuseOption(`defineTask: ${key}`, summary, expected, received);
