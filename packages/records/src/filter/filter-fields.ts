import { contentText, findLastAnswer } from "@cria/core";
import type { DumpLine } from "../dump/dump-line.js";
import { findMismatch } from "../dump/find-mismatch.js";

/** Type of a field. "any": it differs between conversations. A field of any type may be missing: null. */
export type FilterType = "number" | "boolean" | "text" | "any";
export type FilterValue = number | boolean | string | null;

export interface FilterField {
  type: FilterType;
  /** Description for users. */
  meaning: string;
  read: (line: DumpLine) => FilterValue;
}

const count = (name: string) => (line: DumpLine) => line.metrics[name] ?? 0;
const sampled = (line: DumpLine) => line.response_mask.reduce((sum, bit) => sum + bit, 0);

/** Fields of a conversation that filters can name. */
export const filterFields: ReadonlyMap<string, FilterField> = new Map<string, FilterField>(
  Object.entries({
    reward: {
      type: "number",
      meaning: "what was trained on; none when the conversation failed",
      read: (l) => l.reward,
    },
    score: { type: "number", meaning: "what the judges gave", read: (l) => l.score },
    success: { type: "boolean", meaning: "whether the goal was reached", read: (l) => l.success },
    score_before: {
      type: "number",
      meaning: "what the judges gave before cria rescore",
      read: (l) => l.before?.score ?? null,
    },
    advantage: { type: "number", meaning: "mean over the sampled tokens", read: (l) => l.advantage },
    length: { type: "number", meaning: "tokens after the prompt", read: (l) => l.token_ids.length - l.prompt_length },
    sampled: { type: "number", meaning: "tokens that are trained on", read: sampled },
    prompt_length: { type: "number", meaning: "tokens of the prompt", read: (l) => l.prompt_length },
    turns: { type: "number", meaning: "turns, 1 for the prompt included", read: (l) => l.num_turns },
    tool_calls: { type: "number", meaning: "calls, whatever came of them", read: count("tool_calls") },
    tool_errors: { type: "number", meaning: "calls that gave no ordinary answer", read: count("tool_errors") },
    unknown_tools: {
      type: "number",
      meaning: "calls of a tool that it does not have",
      read: count("tool_unknown_tool"),
    },
    invalid_calls: { type: "number", meaning: "calls that could not be read", read: count("tool_invalid_call") },
    invalid_arguments: {
      type: "number",
      meaning: "calls that do not fit the tool's schema",
      read: count("tool_invalid_arguments"),
    },
    mismatch: {
      type: "number",
      meaning: "largest difference of a token's probability by sampler and trainer, where the dump says it",
      read: findMismatch,
    },
    truncated: {
      type: "boolean",
      meaning: "ended because no token was left",
      read: (l) => l.finish_reason === "length",
    },
    failed: {
      type: "boolean",
      meaning: "the environment or the judge broke it",
      read: (l) => l.error !== null || l.finish_reason === "aborted",
    },
    finish_reason: { type: "text", meaning: "stop, length, tool_calls or aborted", read: (l) => l.finish_reason },
    error: { type: "text", meaning: "why it failed", read: (l) => l.error },
    uid: { type: "text", meaning: "its prompt", read: (l) => l.uid },
    sample: { type: "number", meaning: "which of the prompt's samples, from 0", read: (l) => l.sample },
    row: { type: "number", meaning: "position of its row in the dataset", read: (l) => l.row },
    source: { type: "text", meaning: "data_source of its row", read: (l) => l.data_source },
    step: { type: "number", meaning: "of the training", read: (l) => l.step },
    ground_truth: { type: "any", meaning: "of its row", read: (l) => simplify(l.ground_truth) },
    prompt: { type: "text", meaning: "text of the prompt's messages", read: (l) => join(l, 0, l.prompt_messages) },
    text: { type: "text", meaning: "text of all messages after the prompt", read: (l) => join(l, l.prompt_messages) },
    answer: {
      type: "text",
      meaning: "text of the last assistant message",
      read: (l) => {
        const said = l.messages.slice(l.prompt_messages);
        return said.some(({ role }) => role === "assistant") ? findLastAnswer(said) : null;
      },
    },
  } satisfies Record<string, FilterField>),
);

/** Groups of fields whose names depend on the run, such as `parts.format`. */
export const filterFamilies: ReadonlyMap<string, (line: DumpLine, name: string) => FilterValue> = new Map([
  ["parts", readPart],
  ["extra", (line: DumpLine, name: string) => simplify(readOwn(line.extra, name))],
  ["metrics", (line: DumpLine, name: string) => simplify(readOwn(line.metrics, name))],
]);

/** Looks a number up by name: a part of the score, a part of the reward, or an extra of the reward function. */
function readPart(line: DumpLine, name: string): FilterValue {
  const part = line.parts.find((entry) => entry.name === name);
  return simplify(part?.value ?? readOwn(line.rewards, name) ?? readOwn(line.extra, name));
}

/** Own properties only: `extra.constructor` is null. */
function readOwn(record: object, name: string): unknown {
  return Object.hasOwn(record, name) ? (record as Record<string, unknown>)[name] : undefined;
}

function simplify(value: unknown): FilterValue {
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "string") return value;
  return value === undefined || value === null ? null : JSON.stringify(value);
}

function join(line: DumpLine, start: number, end?: number): string {
  return line.messages
    .slice(start, end)
    .map((message) => contentText(message.content))
    .join("\n");
}
