import { z } from "zod";
import { sha256 } from "./packed.js";

/**
 * Names the user code of a training: the modules and files that its config names (tools, interactions, agent loops,
 * losses). The code itself is never sent: a worker has it, or lacks it.
 */
export const userCodeSchema = z.discriminatedUnion("kind", [
  /** An installed package: the config's folder lies in it, at `folder`. */
  z.strictObject({
    kind: z.literal("package"),
    name: z.string().max(214),
    version: z.string().max(100),
    folder: z.string().max(1000),
  }),
  /** A folder whose sources have this hash (`hashFolder`). */
  z.strictObject({ kind: z.literal("folder"), hash: sha256 }),
  /** A task in memory: workers are started with one of that name. */
  z.strictObject({ kind: z.literal("task"), name: z.string().max(200) }),
]);
export type UserCodeId = z.infer<typeof userCodeSchema>;

/** A GGUF that workers need, found by its SHA-256 in any folder. */
const fileSchema = z.strictObject({
  /** File name, for people. */
  name: z.string().max(1000),
  sha256,
  bytes: z.int().positive(),
  /** Its address at the hub (hf:...); null: a local file. */
  address: z.string().max(1000).nullable(),
  /** Blobs of its parts in the bus, in order; null: it is not shared. */
  blobs: z.array(sha256).nullable(),
});
export type ModelFile = z.infer<typeof fileSchema>;

/** Everything that workers need to know of a training. It is stored packed; its SHA-256 names the run in every job. */
export const runDescriptionSchema = z.strictObject({
  /** The coordinator's version of Cria; workers of other versions refuse the run. */
  cria: z.string().max(100),
  /**
   * The whole config, as JSON. Its paths are relative to the folder of the user code, except those of model and projector.
   */
  config: z.record(z.string(), z.unknown()),
  userCode: userCodeSchema,
  model: fileSchema,
  /** Projector with which the model sees images; null: it reads only text. */
  projector: fileSchema.nullable(),
  /** The coordinator's class of bits (`computeClass`). */
  class: z.string().max(64),
  /** SHA-256 of the weights that the class was computed with; they stay in the bus while the run lasts. */
  weights: sha256,
  /** Parser of tool calls that was detected for the model; null: the config's. */
  toolFormat: z.string().max(1000).nullable(),
});
export type RunDescription = z.infer<typeof runDescriptionSchema>;
