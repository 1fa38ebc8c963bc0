import type { FinishReason, ToolSchema } from "@cria/core";
import { z } from "zod";
import { asItCame, listOf, messagesSchema, text } from "./message-schema.js";
import { isUsableNumber, usableNumber } from "./usable-number.js";

const number = z.custom<number>(isUsableNumber, usableNumber);
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const count = z.custom<number>(isCount, "a whole number");
const score = number.nullable();
const object = <T extends z.ZodRawShape>(shape: T) => z.object(shape, "an object");
/** False for BigInts too, on which bit operators throw. */
const isInt32 = (id: unknown) => typeof id === "number" && (id | 0) === id;
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Copies a typed or plain list of numbers into a typed array, in one pass: a schema per number would be too slow for
 * thousands of them.
 * @param holds true if the typed array can hold the value exactly.
 */
function numbersOf<T extends Int32Array | Uint8Array | Float32Array>(
  Kind: new (values: ArrayLike<number>) => T,
  expected: string,
  holds: (value: unknown) => boolean,
) {
  return z.unknown().transform((value, context): T => {
    if (value instanceof Kind) return new Kind(value);
    const list = Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value) ? value : null;
    const wrong = list && findWrong(list as ArrayLike<unknown>, holds);
    if (list && wrong === null) return new Kind(list as ArrayLike<number>);
    const issue = wrong === null ? { message: `a list of ${expected}` } : { message: expected, path: [wrong] };
    context.addIssue({ code: "custom", ...issue });
    return z.NEVER;
  });
}

function findWrong(list: ArrayLike<unknown>, holds: (value: unknown) => boolean): number | null {
  for (let i = 0; i < list.length; i++) if (!holds(list[i])) return i;
  return null;
}

/** A record of numbers. */
const metrics = z.unknown().superRefine((value, context) => {
  if (!isRecord(value)) return context.addIssue({ code: "custom", message: "an object" });
  const entries = Object.entries(value);
  if (entries.length > 1000) context.addIssue({ code: "custom", message: "at most 1,000 names" });
  for (const [name, entry] of entries) {
    if (name.length > 200) context.addIssue({ code: "custom", message: "names of at most 200 characters" });
    if (!isUsableNumber(entry)) context.addIssue({ code: "custom", message: usableNumber, path: [name] });
  }
}) as unknown as z.ZodType<Record<string, number>>;

/** A value that cannot be written to a file would otherwise be noticed only after the step, which would be lost. */
const extraFields = z.unknown().superRefine((value, context) => {
  if (!isRecord(value)) return context.addIssue({ code: "custom", message: "an object" });
  try {
    JSON.stringify(value);
  } catch (error) {
    const params = { received: (error as Error).message };
    context.addIssue({ code: "custom", message: "what JSON can hold", params });
  }
}) as unknown as z.ZodType<Record<string, unknown>>;

const rewards = listOf(object({ value: number, tokenIndex: count }), 1_000_000);

const segment = object({
  start: count,
  end: count,
  parent: z.custom<number>((value) => value === -1 || isCount(value), "the index of an earlier segment, or -1"),
  messages: messagesSchema,
});

const functionSchema = z.looseObject(
  { name: text, description: text.optional(), parameters: z.looseObject({}, "an object") },
  "an object",
);
const toolSchema = z.looseObject({ type: z.literal("function", "function"), function: functionSchema }, "an object");
const toolSchemas = asItCame<readonly ToolSchema[]>(listOf(toolSchema, 10_000)).optional();

/** The policy call behind an agent's turn. */
const call = object({
  messages: count,
  // Part of the seed, and added to one.
  sibling: z.custom<number>((value) => isCount(value) && (value as number) < 100_000, "a whole number below 100,000"),
  last: z.literal(true, "true").optional(),
  tools: toolSchemas,
  request: extraFields,
});

const span = { start: count, end: count };
const turnRoles = ["assistant", "tool", "user"] as const;
const turn = object({
  role: z.enum(turnRoles, turnRoles.join(", ")),
  ...span,
  startedAt: number,
  endedAt: number,
  toolCalls: object({ count, ...span }).optional(),
  failures: listOf(text.nullable(), 10_000).optional(),
  state: text.optional(),
  call: call.optional(),
});

const finishReasons = ["stop", "length", "tool_calls", "aborted"] as const satisfies readonly FinishReason[];

/**
 * An ended episode, laid out as tokens: the output of agent loops, and the content of dumps and of workers' results.
 * It defines the fields; `checkLayout` checks that they agree with each other and with a model. Each message is the
 * `expected` part of an error.
 */
export const trajectorySchema = object({
  tokenIds: numbersOf(Int32Array, "token ids, the prompt's and then the response's", isInt32),
  promptLength: count,
  responseMask: numbersOf(Uint8Array, "0 or 1", (bit) => bit === 0 || bit === 1),
  rolloutLogprobs: numbersOf(Float32Array, "finite numbers", (value) => typeof value === "number"),
  messages: messagesSchema,
  segments: listOf(segment, 100_000).optional(),
  toolSchemas,
  finishReason: z.enum(finishReasons, finishReasons.join(", ")),
  numTurns: count,
  turnScores: rewards,
  toolRewards: rewards,
  score,
  toolScore: score,
  interactionScore: score,
  scoreError: text.optional(),
  error: text.optional(),
  extraFields,
  metrics,
  turns: listOf(turn, 100_000),
  transitions: listOf(object({ state: text.max(200, "a text of at most 200 characters"), at: number }), 100_000),
});

/** Called for the first error; throws. `field`: path such as `turns[0].end`; empty for the whole value. */
export type Refuse = (field: string, expected: string, received: unknown) => never;

/** Parses a value by a schema whose messages say what was expected. */
export function readFields<T>(schema: z.ZodType<T>, value: unknown, refuse: Refuse): T {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data as T;
  const [issue] = error.issues as [z.core.$ZodIssue];
  const isUnknown = issue.code === "unrecognized_keys";
  const path = isUnknown ? [...issue.path, issue.keys[0]!] : issue.path;
  const received = issue.code === "custom" ? issue.params?.received : undefined;
  return refuse(namePath(path), isUnknown ? "no such field" : issue.message, received ?? follow(value, path));
}

function namePath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`));
  return steps.join("").replace(/^\./, "");
}

function follow(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((at: unknown, step) => (at as Record<PropertyKey, unknown> | undefined)?.[step], value);
}
