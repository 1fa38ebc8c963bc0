import { createReadStream } from "node:fs";
import { DataError, readOrThrow } from "@cria/core";
import { readMessages } from "./dump-images.js";
import { DUMP_FORMAT_VERSION, type DumpLine } from "./dump-line.js";

/**
 * Reads the conversations of a dump one by one: `rollouts/<step>.jsonl`, `validation/<step>.jsonl`, or the output of
 * `cria rollout` and `cria eval`. Lines of older formats are converted. An incomplete last line is skipped. Memory:
 * one line.
 * @throws DataError when the file cannot be read, or a line does not belong to a dump.
 */
export async function* readDump(file: string): AsyncGenerator<DumpLine> {
  let number = 0;
  for await (const { text, isWhole } of readLines(file)) {
    number++;
    if (text.trim() === "") continue;
    const place = `${file}, line ${number}`;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      if (!isWhole) return;
      throw makeBadLine(place, `no JSON: ${text.slice(0, 80)}`, cause);
    }
    yield parseDumpLine(value, place);
  }
}

/** Splits at line feeds only: JSON may contain other line separators. */
async function* readLines(file: string): AsyncGenerator<{ text: string; isWhole: boolean }> {
  let rest = "";
  const stream = createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 });
  const chunks: AsyncIterator<string, void> = stream[Symbol.asyncIterator]();
  const details = { subject: file, expected: "a readable file of conversations (JSONL)" };
  try {
    for (;;) {
      const chunk = await readOrThrow(() => chunks.next(), DataError, details);
      if (chunk.done) break;
      const pieces = chunk.value.split("\n");
      pieces[0] = rest + pieces[0];
      rest = pieces.pop()!;
      for (const text of pieces) yield { text, isWhole: true };
    }
  } finally {
    stream.destroy();
  }
  if (rest !== "") yield { text: rest, isWhole: false };
}

/**
 * Converts a line of any version to the current one.
 * @param place file and line, for errors.
 * @throws DataError when it is not a dump's line.
 */
export function parseDumpLine(value: unknown, place: string): DumpLine {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw makeBadLine(place, typeof value);
  const given = value as Partial<DumpLine>;
  const version = given.format_version ?? 1;
  if (typeof version !== "number" || version > DUMP_FORMAT_VERSION) {
    throw new DataError("was written by a later version", {
      code: "data/dump-version",
      subject: place,
      expected: `format_version ${DUMP_FORMAT_VERSION} or less`,
      received: String(version),
      remedy: "read it with the version of Cria that wrote it, or a later one",
    });
  }
  for (const key of ["messages", "token_ids", "response_mask"] as const)
    if (!Array.isArray(given[key])) throw makeBadLine(place, `no ${key}`);
  const messages = readMessages(given.messages);
  const segments = given.segments?.map((part) => ({ ...part, messages: readMessages(part.messages) }));
  if (!messages || segments?.some((part) => part.messages === null))
    throw makeBadLine(place, "messages without role or content");
  const firstWord = messages.findIndex((message) => message.role === "assistant");
  return {
    ...(given as DumpLine),
    format_version: DUMP_FORMAT_VERSION,
    messages,
    ...(segments ? { segments: segments as DumpLine["segments"] } : {}),
    uid: given.uid ?? "",
    sample: given.sample ?? 0,
    data_source: given.data_source ?? "",
    reward: given.reward ?? null,
    score: given.score ?? null,
    success: given.success ?? null,
    rewards: { outcome: 0, length: 0, tools: 0, turns: 0, tool_score: null, interaction_score: null, ...given.rewards },
    extra: given.extra ?? {},
    error: given.error ?? null,
    finish_reason: given.finish_reason ?? "stop",
    num_turns: given.num_turns ?? messages.length,
    prompt_length: given.prompt_length ?? 0,
    token_level_rewards: given.token_level_rewards ?? [],
    rollout_logprobs: given.rollout_logprobs ?? [],
    metrics: given.metrics ?? {},
    step: given.step ?? null,
    row: given.row ?? null,
    place: given.place ?? null,
    ground_truth: given.ground_truth ?? null,
    parts: given.parts ?? [],
    advantage: given.advantage ?? null,
    prompt_messages: given.prompt_messages ?? (firstWord < 0 ? messages.length : firstWord),
    tools: given.tools ?? [],
    tool_schemas: given.tool_schemas ?? [],
    spans: given.spans ?? [],
    turns: given.turns ?? [],
    turn_scores: given.turn_scores ?? [],
    tool_rewards: given.tool_rewards ?? [],
  };
}

function makeBadLine(place: string, received: string, cause?: unknown): DataError {
  return new DataError("is no conversation of a dump", {
    code: "data/bad-dump",
    subject: place,
    expected: "a line of rollouts/<step>.jsonl, validation/<step>.jsonl, or of what cria rollout and cria eval write",
    received,
    cause,
  });
}
