import {
  type ChatMessage,
  ConfigError,
  type FinishReason,
  type ImageEncoder,
  type ModelInfo,
  type ToolSchema,
  type TrajectorySegment,
} from "@cria/core";
import { isLoaded, listPaths } from "@cria/core/internal";
import type { DatasetRow } from "../data/dataset-row.js";
import { describeData, isUsableNumber, toPlainRecord, usableNumber } from "../plain-data.js";
import type { AgentLoopOutput } from "./agent-loop.js";

/** An agent loop's output after its check. It is complete, except for values that only the policy can compute. */
export interface CheckedOutput
  extends Omit<
    Required<AgentLoopOutput>,
    "rolloutLogprobs" | "messages" | "segments" | "toolSchemas" | "scoreError" | "error"
  > {
  tokenIds: Int32Array;
  responseMask: Uint8Array;
  /** 0 where the mask is 0; null when the loop returned none. */
  rolloutLogprobs: Float32Array | null;
  /** Null when the loop gave none. */
  messages: ChatMessage[] | null;
  /** Null: the tokens are one conversation. */
  segments: TrajectorySegment[] | null;
  toolSchemas?: readonly ToolSchema[];
  scoreError?: string;
  error?: string;
}

export interface OutputLimits {
  /** Name of the loop, for errors. */
  loop: string;
  row: DatasetRow;
  info: Pick<ModelInfo, "vocabSize" | "contextSize">;
  /** Absent: the model sees no images. */
  images?: Pick<ImageEncoder, "find">;
  /** Most tokens of the response. */
  responseLength: number;
  /** Most tokens of a conversation. */
  contextLength: number;
}

const finishReasons: readonly FinishReason[] = ["stop", "length", "tool_calls", "aborted"];
const roles: readonly string[] = ["system", "user", "assistant", "tool"];

/**
 * Checks all that an agent loop returned, and fills in the optional fields, so that training never sees a wrong value.
 * @throws ConfigError that names loop, row and field.
 */
export function checkOutput(given: unknown, limits: OutputLimits): CheckedOutput {
  const check = new OutputCheck(limits);
  const output = check.record("output", given) as Partial<AgentLoopOutput>;
  const { info, images, responseLength, contextLength } = limits;
  const isVector = (id: unknown) => (id as number) >= info.vocabSize;
  const isToken = (id: unknown) =>
    Number.isInteger(id) && (id as number) >= 0 && (!isVector(id) || images?.find(id as number) !== undefined);
  const placed = images ? ", or of images that were placed" : "";
  const aToken = `token ids from 0 to ${info.vocabSize - 1}${placed}, the prompt's and then the response's`;
  const tokenIds = Int32Array.from(check.list("tokenIds", output.tokenIds, aToken, isToken));
  const { length } = tokenIds;
  const promptLength = check.count("promptLength", output.promptLength, length + 1);
  if (length - promptLength > responseLength)
    check.fail("tokenIds", `at most ${responseLength} tokens after the prompt`, `${length - promptLength} tokens`);
  const segments = output.segments === undefined ? null : check.segments(output.segments, length);
  const longest = Math.max(
    ...listPaths({ tokenIds, ...(segments ? { segments } : {}) }).map((path) => path.indices.length),
  );
  if (longest > contextLength)
    check.fail("tokenIds", `at most ${contextLength} tokens of a conversation`, `${longest} tokens`);
  const perToken = (field: "responseMask" | "rolloutLogprobs", expected: string, isValid: (v: unknown) => boolean) => {
    const values = check.list(field, output[field], expected, isValid);
    if (values.length !== length)
      check.fail(field, `as long as tokenIds (${length}), prompt included`, `${values.length} values`);
    return values;
  };
  const mask = Uint8Array.from(perToken("responseMask", "0 or 1", (bit) => bit === 0 || bit === 1));
  const seen = mask.findIndex((bit, t) => bit === 1 && isVector(tokenIds[t]));
  if (seen >= 0) check.fail(`responseMask[${seen}]`, "0 for an image, which nobody sampled", 1);
  const first = mask.indexOf(1);
  if (first >= 0 && first < promptLength)
    check.fail(`responseMask[${first}]`, `0 for the prompt, which is ${promptLength} tokens (promptLength)`, 1);
  const logprobs =
    output.rolloutLogprobs === undefined
      ? null
      : Float32Array.from(perToken("rolloutLogprobs", "finite numbers", Number.isFinite), (value, i) =>
          mask[i] ? value : 0,
        );
  const error = output.error === undefined ? undefined : check.text("error", output.error);
  const rewards = {
    turnScores: check.rewards("turnScores", output.turnScores ?? [], mask),
    toolRewards: check.rewards("toolRewards", output.toolRewards ?? [], mask),
  };
  if (error !== undefined) {
    mask.fill(0);
    logprobs?.fill(0);
  }
  const finishReason = output.finishReason ?? "stop";
  if (!finishReasons.includes(finishReason)) check.fail("finishReason", finishReasons.join(", "), finishReason);
  return {
    tokenIds,
    promptLength,
    responseMask: mask,
    rolloutLogprobs: logprobs,
    ...rewards,
    segments,
    score: check.score("score", output.score),
    toolScore: check.score("toolScore", output.toolScore),
    interactionScore: check.score("interactionScore", output.interactionScore),
    numTurns: check.count("numTurns", output.numTurns, Number.POSITIVE_INFINITY),
    metrics: check.numbers("metrics", output.metrics),
    messages: output.messages === undefined ? null : check.messages(output.messages),
    finishReason,
    extraFields: check.json("extraFields", output.extraFields ?? {}),
    transitions: check.entries("transitions", output.transitions ?? [], (entry, field) => {
      check.text(`${field}.state`, entry.state);
      check.number(`${field}.at`, entry.at);
    }),
    turns: check.entries("turns", output.turns ?? [], (turn, field) => check.turn(turn, field, length)),
    ...(output.toolSchemas === undefined ? {} : { toolSchemas: output.toolSchemas }),
    ...(output.scoreError === undefined ? {} : { scoreError: check.text("scoreError", output.scoreError) }),
    ...(error === undefined ? {} : { error }),
  };
}

/** Checks values by field; every method gives its value back, or throws. */
class OutputCheck {
  constructor(private readonly limits: OutputLimits) {}

  fail(field: string, expected: string, received: unknown): never {
    const { loop, row } = this.limits;
    throw new ConfigError("returned something that cannot be trained on", {
      code: "config/bad-agent-loop",
      subject: `agent loop "${loop}", row ${row.index}, ${field}`,
      expected,
      received: typeof received === "string" ? received : describeData(received),
      remedy: "AgentLoopOutput of @cria/rollout says what a loop returns",
    });
  }

  record(field: string, value: unknown): Record<string, unknown> {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return this.fail(field, "an object", value);
  }

  /** A list of numbers, typed or plain. */
  list(field: string, value: unknown, expected: string, isValid: (v: unknown) => boolean): ArrayLike<number> {
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value);
    if (!isList) this.fail(field, `a list of ${expected}`, value);
    const list = value as ArrayLike<number>;
    for (let i = 0; i < list.length; i++) if (!isValid(list[i])) this.fail(`${field}[${i}]`, expected, list[i]);
    return list;
  }

  number(field: string, value: unknown): number {
    return isUsableNumber(value) ? value : this.fail(field, usableNumber, value);
  }

  /** A whole number from 0 to below `end`. */
  count(field: string, value: unknown, end: number): number {
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < end) return value as number;
    return this.fail(field, end === Number.POSITIVE_INFINITY ? "a whole number" : `a whole number below ${end}`, value);
  }

  text(field: string, value: unknown): string {
    return typeof value === "string" ? value : this.fail(field, "a text", value);
  }

  score(field: string, value: unknown): number | null {
    return value === undefined || value === null ? null : this.number(field, value);
  }

  numbers(field: string, value: unknown): Record<string, number> {
    const record = this.record(field, value);
    return Object.fromEntries(
      Object.entries(record).map(([name, entry]) => [name, this.number(`${field}.${name}`, entry)]),
    );
  }

  /** A value that cannot be written to a file would be noticed only after the step, which would be lost. */
  json(field: string, value: unknown): Record<string, unknown> {
    const record = this.record(field, value);
    try {
      JSON.stringify(record);
      return toPlainRecord(record);
    } catch (error) {
      return this.fail(field, "what JSON can hold", (error as Error).message);
    }
  }

  entries<T extends object>(field: string, value: T[], check: (entry: T, field: string) => void): T[] {
    if (!Array.isArray(value)) this.fail(field, "a list", value);
    for (const [i, entry] of value.entries()) check(this.record(`${field}[${i}]`, entry) as T, `${field}[${i}]`);
    return value;
  }

  /** A token that was not sampled cannot have earned a reward: the record drops such rewards. */
  rewards(field: string, value: { value: number; tokenIndex: number }[], mask: Uint8Array) {
    const hasSampled = mask.includes(1);
    return this.entries(field, value, (entry, place) => {
      this.number(`${place}.value`, entry.value);
      if (!hasSampled) return;
      this.count(`${place}.tokenIndex`, entry.tokenIndex, mask.length);
      if (mask[entry.tokenIndex] !== 1)
        this.fail(`${place}.tokenIndex`, "the index of a token with mask 1", `${entry.tokenIndex}, whose mask is 0`);
    });
  }

  messages(value: ChatMessage[]): ChatMessage[] {
    return this.entries("messages", value, (message, field) => {
      if (!roles.includes(message.role)) this.fail(`${field}.role`, roles.join(", "), message.role);
      if (!Array.isArray(message.content)) return void this.text(`${field}.content`, message.content);
      this.entries(`${field}.content`, message.content, (part, place) => {
        if (part.type === "text") return void this.text(`${place}.text`, part.text);
        if (part.type !== "image") this.fail(`${place}.type`, "text or image", (part as { type: unknown }).type);
        const image = this.record(`${place}.image`, part.image);
        if (!isLoaded(image as never)) this.fail(`${place}.image`, "an image of context.loadImage", image);
      });
    });
  }

  /** Segments lie end to end, cover all tokens, and follow earlier ones. */
  segments(value: TrajectorySegment[], length: number): TrajectorySegment[] {
    let at = 0;
    this.entries("segments", value, (segment, field) => {
      if (segment.start !== at) this.fail(`${field}.start`, `${at}, where the one before it ends`, segment.start);
      at = this.count(`${field}.end`, segment.end, length + 1);
      if (at < segment.start) this.fail(`${field}.end`, `at least its start (${segment.start})`, at);
      const index = value.indexOf(segment);
      if (!(Number.isInteger(segment.parent) && segment.parent >= -1 && segment.parent < index))
        this.fail(`${field}.parent`, `the index of an earlier segment, or -1`, segment.parent);
      this.messages(segment.messages);
    });
    if (at !== length) this.fail("segments", `segments of all ${length} tokens`, `segments up to token ${at}`);
    return value;
  }

  turn(turn: NonNullable<AgentLoopOutput["turns"]>[number], field: string, length: number): void {
    const turnRoles = roles.slice(1);
    if (!turnRoles.includes(turn.role)) this.fail(`${field}.role`, turnRoles.join(", "), turn.role);
    for (const [place, span] of [
      [field, turn],
      [`${field}.toolCalls`, turn.toolCalls],
    ] as const) {
      if (span === undefined) continue;
      this.count(`${place}.start`, span.start, length + 1);
      if (this.count(`${place}.end`, span.end, length + 1) < span.start)
        this.fail(`${place}.end`, `at least its start (${span.start})`, span.end);
    }
    this.number(`${field}.startedAt`, turn.startedAt);
    this.number(`${field}.endedAt`, turn.endedAt);
    if (turn.state !== undefined) this.text(`${field}.state`, turn.state);
  }
}
