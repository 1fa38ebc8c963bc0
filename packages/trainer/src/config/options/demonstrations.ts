import { z } from "zod";
import { files } from "../sections/lists.js";

/** Conversations that every update also learns to repeat. */
export const demonstrationOptions = z.strictObject({
  files: files
    .nullable()
    .default(null)
    .describe(
      "Conversations to repeat, as `cria sft` reads them: Parquet, JSONL or JSON files with messages, sets of a hub, or dumps of rollouts. Their weight in the loss is actor.demonstration_coeff. null: none.",
    ),
  size: z
    .int()
    .positive()
    .default(8)
    .describe("Conversations of each optimizer step, drawn by the seed; at most all of them."),
  keep: z
    .string()
    .nullable()
    .default(null)
    .describe('For dumps: a filter of their conversations, such as "reward == 1"; null: all that ended by themselves.'),
  messagesKey: z.string().default("messages").describe("Column of the conversations' messages."),
  toolsKey: z.string().default("tools").describe("Column of their tools' schemas."),
});

export type DemonstrationOptions = z.infer<typeof demonstrationOptions>;
