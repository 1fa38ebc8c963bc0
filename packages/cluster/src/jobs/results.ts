import {
  ClusterError,
  type ModelInfo,
  type PolicyEngine,
  type ScoreShard,
  type ShardGradient,
  type ShardScores,
} from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/rollout";
import { z } from "zod";
import { cleanText } from "../bus/job-record.js";
import { asItCame, every, float32s, image, int32s, isSmall, messagesSchema, number, numbers, text } from "./checked.js";
import { showIds } from "./image-tokens.js";

/** Sums of exponentials are rounded: what is certain may be a little more than that. */
const MOST_LOGPROB = 1e-3;

/** A conversation's result: what the payload alone decides. Of vectors it has no ids (`hideIds`). */
export type ConversationResult = Omit<UnjudgedTrajectory, "metrics" | "timeline">;
/** What comes beside it, and differs from worker to worker. */
export type ConversationRecord = Pick<UnjudgedTrajectory, "metrics" | "timeline">;

/** What a conversation must fit. */
export interface ConversationLimits {
  info: Pick<ModelInfo, "vocabSize">;
  /** Absent: the model sees none. */
  images?: PolicyEngine["images"];
  /** Most tokens after the prompt. */
  responseLength: number;
}

const score = number.nullable();
const place = z.int().min(0);
const rewards = z.array(z.strictObject({ value: number, tokenIndex: place })).max(1_000_000);
const segment = z.strictObject({ start: place, end: place, parent: z.int().min(-1), messages: messagesSchema });

const trajectorySchema = z.strictObject({
  rowIndex: z.number(),
  uid: text,
  sampleIndex: place,
  dataSource: text,
  tokenIds: int32s,
  promptLength: place,
  images: z
    .array(z.strictObject({ image, start: place, length: z.int().positive() }))
    .max(100_000)
    .optional(),
  responseMask: z.instanceof(Uint8Array),
  rolloutLogprobs: float32s,
  messages: messagesSchema,
  segments: z.array(segment).max(100_000).optional(),
  toolSchemas: z
    .array(
      z.looseObject({
        type: z.literal("function"),
        function: z.looseObject({ name: text, description: text.optional(), parameters: z.looseObject({}) }),
      }),
    )
    .max(10_000)
    .optional(),
  finishReason: z.enum(["stop", "length", "tool_calls", "aborted"]),
  numTurns: place,
  turnScores: rewards,
  toolRewards: rewards,
  sampling: z
    .strictObject({ seed: z.int(), temperature: number, topP: number, topK: z.int(), minP: number })
    .optional(),
  extraFields: z.record(z.string(), z.unknown()),
  score,
  toolScore: score,
  interactionScore: score,
  scoreError: text.optional(),
  error: text.optional(),
});

const time = z.number().nonnegative();
const state = <States extends [string, ...string[]]>(states: States) =>
  z.array(z.strictObject({ state: z.enum(states), at: time })).max(100_000);
const span = { start: place, end: place };

const recordSchema = z.strictObject({
  metrics: numbers,
  timeline: z
    .strictObject({
      loop: state(["pending", "generating", "processing_tools", "interacting", "terminated"]),
      request: state(["pending", "running", "tool_calling", "interacting", "completed", "failed"]),
      turns: z
        .array(
          z.strictObject({
            role: z.enum(["assistant", "tool", "user"]),
            ...span,
            startedAt: time,
            endedAt: time,
            toolCalls: z.strictObject({ count: place, ...span }).optional(),
            failures: z.array(text.nullable()).optional(),
            state: text.optional(),
          }),
        )
        .max(100_000),
    })
    .optional(),
});

/**
 * The conversation that a worker held, checked as what an agent loop returns is. Its vectors have the ids of this process.
 * @param value unpacked. @throws ClusterError "cluster/invalid-message" that names the field.
 */
export function readConversation(value: unknown, limits: ConversationLimits): ConversationResult {
  const subject = "the record of a conversation";
  const given = parse(subject, asItCame<ConversationResult>(trajectorySchema), value);
  const refuse = refuseIn(subject);
  const { vocabSize } = limits.info;
  const isToken = (token: number) => token < vocabSize && (token >= 0 || given.images !== undefined);
  if (!every(given.tokenIds, isToken)) refuse(`token ids from 0 to ${vocabSize - 1}`);
  const found = showIds(given, limits, refuse);
  const { tokenIds, promptLength, responseMask, rolloutLogprobs, segments } = found;
  const { length } = tokenIds;
  if (promptLength > length) refuse(`a prompt of at most ${length} tokens`, promptLength);
  if (length - promptLength > limits.responseLength)
    refuse(`at most ${limits.responseLength} tokens after the prompt`, length - promptLength);
  if (responseMask.length !== length) refuse(`a mask of ${length} tokens`, responseMask.length);
  if (!every(responseMask, (bit, t) => bit === 0 || (bit === 1 && t >= promptLength && tokenIds[t]! < vocabSize)))
    refuse("a mask of 0 and 1, and 0 on the prompt and on images");
  if (rolloutLogprobs.length !== length) refuse(`logprobs of ${length} tokens`, rolloutLogprobs.length);
  if (!every(rolloutLogprobs, (logprob, t) => (responseMask[t] ? isLogprob(logprob) : logprob === 0)))
    refuse("finite logprobs of at most 0, and 0 where the mask is");
  for (const { tokenIndex } of [...found.turnScores, ...found.toolRewards])
    if (responseMask[tokenIndex] !== 1) refuse("rewards at tokens that were sampled", tokenIndex);
  if (segments) checkSegments(segments, length, refuse);
  // A view of the message would keep all of it.
  return { ...found, responseMask: Uint8Array.from(responseMask) };
}

/** What comes beside a conversation. @param tokens of it. @throws ClusterError "cluster/invalid-message". */
export function readConversationRecord(value: unknown, tokens: number): ConversationRecord {
  const subject = "what comes with a conversation";
  const found = parse(subject, asItCame<ConversationRecord>(recordSchema), value);
  const isSpan = ({ start, end }: { start: number; end: number }) => start <= end && end <= tokens;
  for (const turn of found.timeline?.turns ?? [])
    if (!isSpan(turn) || (turn.toolCalls && !isSpan(turn.toolCalls)))
      refuseIn(subject)(`turns within ${tokens} tokens`, `${turn.start} to ${turn.end}`);
  return found;
}

const scoresSchema = z.strictObject({ logprobs: float32s, entropy: float32s, squares: float32s.nullable() });

/** Scores of a shard's targets. @throws ClusterError "cluster/invalid-message". */
export function readScores(value: unknown, { targets, squares: wantsSquares }: ScoreShard): ShardScores {
  const found = parse("scores", scoresSchema, value);
  const refuse = refuseIn("scores");
  const check = (what: string, values: Float32Array, isValid: (value: number) => boolean) => {
    if (values.length !== targets.length || !every(values, isValid)) refuse(`${targets.length} ${what}`);
  };
  const { logprobs, entropy, squares } = found;
  check("finite logprobs of at most 0", logprobs, isLogprob);
  check("finite entropies", entropy, (value) => Number.isFinite(value) && value >= -MOST_LOGPROB);
  if ((squares !== null) !== wantsSquares) refuse("squared probabilities where they were asked for, and only there");
  if (squares) check("sums of squared probabilities", squares, (value) => value > 0 && value <= 1.001);
  return found;
}

const gradientSchema = z.strictObject({ gradient: float32s, loss: number, metrics: numbers });

/** @param info of the engine whose tensors it is for. @throws ClusterError "cluster/invalid-message". */
export function readGradient(value: unknown, info: Pick<ModelInfo, "trainableParameterCount">): ShardGradient {
  const found = parse("a gradient", gradientSchema, value);
  const { gradient } = found;
  const count = info.trainableParameterCount;
  if (gradient.length !== count)
    refuseIn("a gradient")(`${count} values, one for each trained weight`, gradient.length);
  // Finite values may be so large that their sum is not: here it is known whose they are.
  if (!every(gradient, isSmall)) refuseIn("a gradient")("finite numbers, none beyond 1e30");
  return found;
}

function isLogprob(value: number): boolean {
  return Number.isFinite(value) && value <= MOST_LOGPROB;
}

/** Segments lie end to end, cover all tokens, and follow earlier ones. */
function checkSegments(
  segments: NonNullable<ConversationResult["segments"]>,
  length: number,
  refuse: ReturnType<typeof refuseIn>,
): void {
  let at = 0;
  for (const [i, { start, end, parent }] of segments.entries()) {
    if (start !== at || end < start || parent >= i)
      refuse("segments end to end, each behind the one that it follows", i);
    at = end;
  }
  if (at !== length) refuse(`segments of all ${length} tokens`, at);
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
