import { showContent } from "@cria/core/internal";
import type { DumpLine } from "@cria/records";
import { type FilterValue, filterFields, findMismatch } from "@cria/records/internal";
import type { ConversationEntry } from "@cria/viewer/api";

/** The indexed data of a line of a dump. */
export interface IndexRow extends ConversationEntry {
  /** Bytes: start of the line, and its length without its line feed. */
  at: number;
  length: number;
  step: number | null;
  row: number | null;
  score: number | null;
  scoreBefore: number | null;
  promptLength: number;
  unknownTools: number;
  invalidCalls: number;
  invalidArguments: number;
  /** First words of the question; empty if an earlier line of the file has the same prompt. */
  title: string;
  /** True if the line describes tools that no earlier one does. */
  hasSchemas: boolean;
}

/** Characters of a title, and of hostile or damaged texts. */
const LONGEST_TITLE = 160;
const LONGEST_NAME = 500;

/** @param place place of the line: its number, and its bytes. */
export function makeRow(dump: DumpLine, place: Pick<IndexRow, "line" | "at" | "length">): IndexRow {
  const count = (name: string) => toNumber(dump.metrics[name]) ?? 0;
  const failed = dump.error !== null || dump.finish_reason === "aborted";
  return {
    ...place,
    uid: cut(dump.uid, LONGEST_NAME),
    sample: toNumber(dump.sample) ?? 0,
    reward: failed ? null : toNumber(dump.reward),
    success: typeof dump.success === "boolean" ? dump.success : null,
    advantage: toNumber(dump.advantage),
    finish: cut(dump.finish_reason, 40),
    sampled: dump.response_mask.reduce((sum, bit) => sum + (bit === 1 ? 1 : 0), 0),
    tokens: dump.token_ids.length,
    turns: toNumber(dump.num_turns) ?? 0,
    toolCalls: count("tool_calls"),
    toolErrors: count("tool_errors"),
    mismatch: findMismatch(dump),
    failed,
    place: dump.place === null ? null : cut(dump.place, LONGEST_NAME),
    dataSource: cut(dump.data_source, LONGEST_NAME),
    step: toNumber(dump.step),
    row: toNumber(dump.row),
    score: toNumber(dump.score),
    scoreBefore: toNumber(dump.before?.score),
    promptLength: toNumber(dump.prompt_length) ?? 0,
    unknownTools: count("tool_unknown_tool"),
    invalidCalls: count("tool_invalid_call"),
    invalidArguments: count("tool_invalid_arguments"),
    title: makeTitle(dump),
    hasSchemas: Array.isArray(dump.tool_schemas) && dump.tool_schemas.length > 0,
  };
}

/** The row as lists show it. */
export function toEntry(row: IndexRow): ConversationEntry {
  const { line, uid, sample, reward, success, advantage, finish, sampled, tokens, turns } = row;
  const { toolCalls, toolErrors, mismatch, failed, place, dataSource } = row;
  return {
    ...{ line, uid, sample, reward, success, advantage, finish, sampled, tokens, turns },
    ...{ toolCalls, toolErrors, mismatch, failed, place, dataSource },
  };
}

/** Fields of filters that the index has: the others need the line. */
const readers: Record<string, (row: IndexRow) => FilterValue> = {
  reward: (row) => row.reward,
  score: (row) => row.score,
  success: (row) => row.success,
  score_before: (row) => row.scoreBefore,
  advantage: (row) => row.advantage,
  length: (row) => row.tokens - row.promptLength,
  sampled: (row) => row.sampled,
  prompt_length: (row) => row.promptLength,
  turns: (row) => row.turns,
  tool_calls: (row) => row.toolCalls,
  tool_errors: (row) => row.toolErrors,
  unknown_tools: (row) => row.unknownTools,
  invalid_calls: (row) => row.invalidCalls,
  invalid_arguments: (row) => row.invalidArguments,
  mismatch: (row) => row.mismatch,
  truncated: (row) => row.finish === "length",
  failed: (row) => row.failed,
  finish_reason: (row) => row.finish,
  uid: (row) => row.uid,
  sample: (row) => row.sample,
  row: (row) => row.row,
  source: (row) => row.dataSource,
  step: (row) => row.step,
} satisfies Partial<Record<string, (row: IndexRow) => FilterValue>>;

/** Reads a field of filters from the index; undefined for fields that it lacks. */
export function findReader(field: string): ((row: IndexRow) => FilterValue) | undefined {
  return filterFields.has(field) && Object.hasOwn(readers, field) ? readers[field] : undefined;
}

/** The title: the beginning of the last user message in the prompt. */
function makeTitle({ messages, prompt_messages }: DumpLine): string {
  const prompt = messages.slice(0, Math.max(1, toNumber(prompt_messages) ?? 1));
  const message = prompt.findLast(({ role }) => role === "user") ?? prompt.at(-1);
  return cut(
    showContent(message?.content ?? "")
      .slice(0, 4 * LONGEST_TITLE)
      .replace(/\s+/g, " "),
    LONGEST_TITLE,
  ).trim();
}

/** A number of a dump, which may hold anything. */
function toNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function cut(value: unknown, length: number): string {
  const text = typeof value === "string" ? value : String(value ?? "");
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
