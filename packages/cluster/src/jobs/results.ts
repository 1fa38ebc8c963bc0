import {
  ClusterError,
  type ModelInfo,
  type PolicyEngine,
  type ScoreShard,
  type ShardGradient,
  type ShardScores,
} from "@cria/core";
import { checkLayout, image, type Refuse, trajectorySchema, type UnjudgedTrajectory } from "@cria/episodes";
import { checkSpan, isUsableNumber, readFields } from "@cria/episodes/internal";
import { z } from "zod";
import { cleanText } from "../bus/job-record.js";
import { every, float32s, int32s, number, numbers, text } from "./checked.js";
import { showIds } from "./image-tokens.js";

/** Tolerance: sums of exponentials are rounded, so that the log-probability of a certain token may exceed 0. */
const MOST_LOGPROB = 1e-3;

/** Result of a conversation, which the payload alone determines. It has no ids of image vectors (`hideIds`). */
export type ConversationResult = Omit<UnjudgedTrajectory, "metrics" | "timeline">;
/** Data with the result that differs from worker to worker. */
export type ConversationRecord = Pick<UnjudgedTrajectory, "metrics" | "timeline">;

/** Limits that a conversation must meet. */
export interface ConversationLimits {
  info: Pick<ModelInfo, "vocabSize">;
  /** Absent: the model takes no images. */
  images?: PolicyEngine["images"];
  /** Most tokens after the prompt. */
  responseLength: number;
}

const place = z.int("a whole number").min(0, "a whole number");
const { metrics, turns, transitions, ...resultFields } = trajectorySchema.shape;

const resultSchema = z.strictObject(
  {
    ...resultFields,
    // Typed arrays, as they travel: a list of numbers would take many times the memory.
    tokenIds: z.instanceof(Int32Array, { error: "an Int32Array" }),
    responseMask: z.instanceof(Uint8Array, { error: "a Uint8Array" }),
    rolloutLogprobs: z.instanceof(Float32Array, { error: "a Float32Array" }),
    rowIndex: z.number("a number"),
    uid: text,
    sampleIndex: place,
    dataSource: text,
    images: z
      .array(z.strictObject({ image, start: place, length: z.int().positive() }))
      .max(100_000)
      .optional(),
    sampling: z
      .strictObject({ seed: z.int(), temperature: number, topP: number, topK: z.int(), minP: number })
      .optional(),
  },
  "an object",
);

const requestStates = ["pending", "running", "tool_calling", "interacting", "completed", "failed"] as const;
const recordSchema = z.strictObject(
  {
    metrics,
    timeline: z
      .strictObject({
        loop: transitions,
        request: z.array(z.strictObject({ state: z.enum(requestStates), at: number })).max(100_000),
        turns,
      })
      .optional(),
  },
  "an object",
);

/**
 * Reads a worker's conversation, with the same checks as an agent loop's output. Its image vectors get the ids of
 * this process.
 * @param value the unpacked result. @throws ClusterError "cluster/invalid-message" that names the field.
 */
export function readConversation(value: unknown, limits: ConversationLimits): ConversationResult {
  const subject = "the record of a conversation";
  const refuse = refuseField(subject);
  const given: ConversationResult = readFields(resultSchema, value, refuse);
  const { vocabSize } = limits.info;
  // Such ids are only valid within one process.
  const behind = given.tokenIds.findIndex((id) => id >= vocabSize);
  if (behind >= 0) refuse(`tokenIds[${behind}]`, `token ids from 0 to ${vocabSize - 1}`, given.tokenIds[behind]);
  const found = showIds(given, limits, refuseIn(subject));
  const isVector = limits.images && ((id: number) => id >= vocabSize && limits.images!.find(id) !== undefined);
  checkLayout(found, { vocabSize, isVector, responseLength: limits.responseLength }, refuse);
  const { responseMask, rolloutLogprobs, turnScores, toolRewards } = found;
  for (let t = 0; t < responseMask.length; t++) {
    const logprob = rolloutLogprobs[t]!;
    if (responseMask[t] ? !isLogprob(logprob) : logprob !== 0)
      refuse(`rolloutLogprobs[${t}]`, "logprobs of at most 0, and 0 where the mask is", logprob);
  }
  if (turnScores.length + toolRewards.length > 0 && !responseMask.includes(1))
    refuse("turnScores, toolRewards", "rewards at tokens that were sampled", "none was");
  // A copy: a view would keep the whole message in memory.
  return { ...found, responseMask: Uint8Array.from(responseMask) };
}

/**
 * Reads the data that comes with a conversation. @param tokens number of its tokens. @throws ClusterError
 * "cluster/invalid-message".
 */
export function readConversationRecord(value: unknown, tokens: number): ConversationRecord {
  const refuse = refuseField("what comes with a conversation");
  const found = readFields(recordSchema, value, refuse) as ConversationRecord;
  for (const [i, turn] of (found.timeline?.turns ?? []).entries()) {
    checkSpan(`timeline.turns[${i}]`, turn, tokens, refuse);
    if (turn.toolCalls) checkSpan(`timeline.turns[${i}].toolCalls`, turn.toolCalls, tokens, refuse);
  }
  return found;
}

const scoresSchema = z.strictObject({
  logprobs: float32s,
  entropy: float32s,
  squares: float32s.nullable(),
  likeliest: z.strictObject({ count: z.int(), ids: int32s, logprobs: float32s }).optional(),
});

/** Reads the scores of a shard's targets. @throws ClusterError "cluster/invalid-message". */
export function readScores(
  value: unknown,
  { targets, squares: wantsSquares, likeliest: wanted }: ScoreShard,
): ShardScores {
  const found = parse("scores", scoresSchema, value);
  const refuse = refuseIn("scores");
  const check = (what: string, values: Float32Array, isValid: (value: number) => boolean) => {
    if (values.length !== targets.length || !every(values, isValid)) refuse(`${targets.length} ${what}`);
  };
  const { logprobs, entropy, squares, likeliest } = found;
  check("finite logprobs of at most 0", logprobs, isLogprob);
  check("finite entropies", entropy, (value) => Number.isFinite(value) && value >= -MOST_LOGPROB);
  if ((squares !== null) !== wantsSquares) refuse("squared probabilities where they were asked for, and only there");
  if (squares) check("sums of squared probabilities", squares, (value) => value > 0 && value <= 1.001);
  if (likeliest?.count !== wanted?.count) refuse("likeliest tokens where they were asked for, and only there");
  const count = targets.length * (wanted?.count ?? 0);
  const isId = (id: number) => id >= 0 && id < (wanted?.below ?? Number.POSITIVE_INFINITY);
  if (likeliest && (likeliest.ids.length !== count || !every(likeliest.ids, isId)))
    refuse(`${count} ids of likeliest tokens`);
  if (likeliest && (likeliest.logprobs.length !== count || !every(likeliest.logprobs, isLogprob)))
    refuse(`${count} logprobs of likeliest tokens`);
  return found;
}

const gradientSchema = z.strictObject({ gradient: float32s, loss: number, metrics: numbers });

/** @param info info of the engine that the gradient is for. @throws ClusterError "cluster/invalid-message". */
export function readGradient(value: unknown, info: Pick<ModelInfo, "trainableParameterCount">): ShardGradient {
  const found = parse("a gradient", gradientSchema, value);
  const { gradient } = found;
  const count = info.trainableParameterCount;
  if (gradient.length !== count)
    refuseIn("a gradient")(`${count} values, one for each trained weight`, gradient.length);
  // Sums of very large values would overflow later, when their origin is no longer known.
  if (!every(gradient, isUsableNumber)) refuseIn("a gradient")("finite numbers, none beyond 1e30");
  return found;
}

function isLogprob(value: number): boolean {
  return Number.isFinite(value) && value <= MOST_LOGPROB;
}

function parse<T>(subject: string, schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ClusterError("is not what it must be", {
    code: "cluster/invalid-message",
    subject,
    received: cleanText(z.prettifyError(parsed.error)),
  });
}

const refuseIn =
  (subject: string) =>
  (expected: string, received?: unknown): never => {
    throw new ClusterError("is not what it must be", {
      code: "cluster/invalid-message",
      subject,
      expected,
      received: received === undefined ? undefined : String(received),
    });
  };

const refuseField =
  (subject: string): Refuse =>
  (field, expected, received) =>
    refuseIn(field === "" ? subject : `${subject}, ${cleanText(field)}`)(expected, describeReceived(received));

/** Shortened: it may be as long as a message. */
function describeReceived(value: unknown): string {
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value))
    return `${value.constructor.name} of ${value.length}`;
  return typeof value === "object" && value !== null ? "an object" : cleanText(String(value));
}
