import type { MicroBatchShard, ScoreShard } from "@cria/core";
import { image } from "@cria/episodes";
import { asItCame, messagesSchema } from "@cria/episodes/internal";
import type { ConversationWork } from "@cria/rollout";
import type { GradientWork } from "@cria/trainer";
import { policyLossParameters, policyLossTerms, teacherTermOptions } from "@cria/trainer/internal";
import { z } from "zod";
import { every, float32s, int32s, number, text } from "./checked.js";

/**
 * Schemas of the work that arrives at a worker. Its users check whether it fits model and user code: rows like any
 * row of a dataset; the engine checks tokens, trees, ids of vectors and their number in an image.
 */

const record = z.record(z.string(), z.unknown());

/**
 * A row as `parseRow` gave it, with its images; the rest of its data is unchecked. It has no folder, so its paths are
 * refused.
 */
const rowSchema = z.strictObject({
  index: z.number(),
  uid: text,
  place: text,
  prompt: messagesSchema.refine(({ length }) => length > 0, "at least one message"),
  dataSource: text,
  groundTruth: z.unknown().optional(),
  extraInfo: z.looseObject({
    need_tools_kwargs: z.boolean().nullish(),
    tool_selection: z.array(text).nullish(),
    tools_kwargs: z.record(z.string(), record).nullish(),
    interaction_kwargs: record.nullish(),
  }),
  agentName: text.optional(),
  samples: z.int().positive().optional(),
  files: z.record(text, image).optional(),
});

const samplingSchema = z.strictObject({
  temperature: number.min(0),
  topP: number.positive().max(1),
  topK: z.int().min(0),
  minP: number.min(0).max(1),
  stop: z.array(text).max(1000),
  maxTokensPerTurn: z.int().positive().nullable(),
  seed: z.int(),
});

export const conversationWorkSchema = asItCame<ConversationWork>(
  z.strictObject({
    row: rowSchema,
    sample: z.int().min(0),
    step: z.int().min(0),
    policyVersion: z.int().min(0),
    sampling: samplingSchema,
  }),
);

const microBatch = {
  rows: z.int().positive(),
  rowLength: z.int().positive(),
  tokens: int32s,
  positions: int32s,
  ends: int32s,
  sources: int32s,
  targets: int32s,
  candidates: int32s.optional(),
  temperature: number.positive(),
  images: z
    .array(z.strictObject({ first: z.int().min(0), count: z.int().positive(), image }))
    .max(10_000)
    .optional(),
};

function checkMicroBatch(shard: MicroBatchShard, refuse: (message: string) => void): void {
  const { rows, rowLength } = shard;
  for (const name of ["tokens", "positions", "ends"] as const)
    if (shard[name].length !== rows * rowLength) refuse(`${name}: ${rows} rows of ${rowLength}`);
  if (shard.sources.length !== shard.targets.length) refuse("a source for each target");
  if (shard.candidates && shard.candidates.length % shard.targets.length !== 0)
    refuse("as many candidates for each target");
}

export const scoreWorkSchema: z.ZodType<ScoreShard> = z
  .strictObject({
    ...microBatch,
    adapter: z.boolean(),
    squares: z.boolean(),
    likeliest: z.strictObject({ count: z.int().positive(), below: z.int().positive().optional() }).optional(),
  })
  .superRefine((shard, context) => checkMicroBatch(shard, (message) => context.addIssue({ code: "custom", message })));

const counts = { tokens: z.int().min(0), sequences: z.int().min(0) };
const totalsSchema = z.strictObject({
  ...counts,
  terms: z.record(z.string().max(200), z.strictObject(counts)).optional(),
});

const shardSchema = z
  .strictObject({
    ...microBatch,
    scores: int32s,
    inputs: z.strictObject({
      sequenceIndices: int32s,
      offsets: int32s,
      columns: z.record(z.string().max(200), float32s),
      totals: totalsSchema,
    }),
    candidateColumns: z.record(z.string().max(200), float32s).optional(),
  })
  .superRefine((shard, context) => {
    const { scores, inputs, candidates, candidateColumns } = shard;
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    checkMicroBatch(shard, refuse);
    const { offsets, sequenceIndices, columns } = inputs;
    // The loss reads tokens from each offset up to the next.
    if (offsets.length !== sequenceIndices.length + 1) refuse("an offset for each sequence, and one after the last");
    if (!every(offsets, (offset, i) => offset >= (offsets[i - 1] ?? 0))) refuse("offsets that do not decrease");
    if (offsets[0] !== 0 || offsets.at(-1) !== scores.length) refuse("offsets from 0 to the number of tokens");
    for (const [name, column] of Object.entries(columns))
      if (column.length !== scores.length) refuse(`a value for each token in the column ${name}`);
    const count = (candidates?.length ?? 0) / shard.targets.length;
    for (const [name, column] of Object.entries(candidateColumns ?? {}))
      if (column.length !== scores.length * count) refuse(`a value for each candidate in the column ${name}`);
  });

const ruleSchema = z.strictObject({
  name: z.string(),
  level: z.enum(["token", "seq_sum", "seq_mean", "seq_max"]),
  estimate: z.enum(["k1", "k2", "k3"]),
  lower: z.number(),
  upper: z.number(),
});

const correctionSchema = z.strictObject({
  rolloutIs: z.enum(["token", "sequence"]).nullable(),
  rolloutIsThreshold: z.number(),
  rolloutIsThresholdLower: z.number().nullable(),
  rolloutRs: z.array(ruleSchema).max(100),
  rolloutIsBatchNormalize: z.boolean(),
  rolloutTokenVetoThreshold: z.number().nullable(),
});

const name = z.string().max(1000);
/** Bounds may be infinite, which means no bound. */
const bound = z.union([z.number(), z.literal(Number.POSITIVE_INFINITY)]);

function allowInfinite<Shape extends z.ZodRawShape>(
  shape: Shape,
): { [Key in keyof Shape]: z.ZodType<z.infer<Shape[Key]>> } {
  return Object.fromEntries(
    Object.entries(shape).map(([key, schema]) => [key, z.safeParse(schema, null).success ? bound.nullable() : bound]),
  ) as never;
}

const lossSchema = z.strictObject({
  ...allowInfinite(policyLossParameters.shape),
  ...allowInfinite(policyLossTerms.shape),
  lossMode: name,
  lossAggMode: name,
  kl: z.strictObject({ coefficient: bound, type: name }).nullable(),
  teacher: teacherTermOptions.nullable(),
  currentCorrection: correctionSchema.nullable(),
  terms: z.record(z.string().max(200), z.strictObject({ term: name, coefficient: bound })),
});

/** Losses by name: loss objects cannot travel. */
export const gradientWorkSchema: z.ZodType<GradientWork> = z.strictObject({
  shard: shardSchema,
  loss: lossSchema,
  totals: totalsSchema,
});
