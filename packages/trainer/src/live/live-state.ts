import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { clusterViewSchema, type LiveState } from "@cria/records";
import { z } from "zod";
import { isAlive } from "../checkpoints/run-lock.js";

/** File in a run folder with the state of a running training. It exists while the training runs, and after a kill. */
export const LIVE_FILE = "live.json";

const seconds = z.number().nonnegative();
const count = z.number().int().nonnegative();
const liveFileSchema = z.object({
  format_version: z.literal(2),
  at: z.number(),
  process: count,
  step: count,
  total: count,
  phase: z.enum(["loading", "rollout", "scoring", "training", "validation", "saving", "idle"]),
  conversations: z.object({ done: count, generating: count, waiting_for_tools: count, total: count }),
  tokens_per_second: z.number().nonnegative(),
  seconds: z.object({
    decoding: seconds,
    waiting_for_tools: seconds,
    waiting_for_groups: seconds,
    scoring: seconds,
    training: seconds,
    validation: seconds,
    other: seconds,
  }),
  staleness: count,
  eta: seconds.nullable(),
  cluster: clusterViewSchema.nullable().default(null),
});

/** Formats the state for the file. */
export function formatLiveState(state: LiveState): string {
  const { conversations, tokensPerSecond, seconds, ...same } = state;
  const { waitingForTools: waiting, ...counts } = conversations;
  const { waitingForTools, waitingForGroups, ...spent } = seconds;
  const file: z.input<typeof liveFileSchema> = {
    format_version: 2,
    ...same,
    conversations: { ...counts, waiting_for_tools: waiting },
    tokens_per_second: tokensPerSecond,
    seconds: { ...spent, waiting_for_tools: waitingForTools, waiting_for_groups: waitingForGroups },
  };
  return `${JSON.stringify(file)}\n`;
}

/**
 * Reads the present state of a run folder's training. Null if none runs: the file is missing or unreadable, or the
 * process that wrote it has ended. Never throws.
 */
export async function readLiveState(folder: string): Promise<LiveState | null> {
  try {
    const read = liveFileSchema.parse(JSON.parse(await readFile(join(folder, LIVE_FILE), "utf8")));
    const { format_version: _, conversations, tokens_per_second, seconds, ...same } = read;
    if (!isAlive(read.process)) return null;
    const { waiting_for_tools: waiting, ...counts } = conversations;
    const { waiting_for_tools: waitingForTools, waiting_for_groups: waitingForGroups, ...spent } = seconds;
    return {
      ...same,
      conversations: { ...counts, waitingForTools: waiting },
      tokensPerSecond: tokens_per_second,
      seconds: { ...spent, waitingForTools, waitingForGroups },
    };
  } catch {
    return null;
  }
}
