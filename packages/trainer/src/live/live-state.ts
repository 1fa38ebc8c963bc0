import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { isAlive } from "../checkpoints/run-lock.js";
import { type ClusterView, clusterViewSchema } from "./cluster-view.js";

/** File of a run folder that says what a running training does now. It is there while it runs, and after a kill. */
export const LIVE_FILE = "live.json";

export type LivePhase = "loading" | "rollout" | "scoring" | "training" | "validation" | "saving" | "idle";

/** What a running training does now. */
export interface LiveState {
  /** When this was written, in milliseconds since 1970. */
  at: number;
  /** Id of the process that trains. */
  process: number;
  /** The step under way, and how many there are. */
  step: number;
  total: number;
  phase: LivePhase;
  /** Of the rollouts or the validation under way. */
  conversations: { done: number; generating: number; waitingForTools: number; total: number };
  /** Sampled tokens per second over the last seconds; in supervised fine-tuning trained ones. */
  tokensPerSecond: number;
  /** Seconds of the run so far, by what they went into. */
  seconds: { rollout: number; scoring: number; training: number; validation: number; other: number };
  /** Seconds of this process in which every running conversation waited for tools. */
  waitingForTools: number;
  /** Seconds until the last step; null before the first is done. */
  eta: number | null;
  /** Null: all is done in one process. */
  cluster: ClusterView | null;
}

const seconds = z.number().nonnegative();
const count = z.number().int().nonnegative();
const liveFileSchema = z.object({
  format_version: z.literal(1),
  at: z.number(),
  process: count,
  step: count,
  total: count,
  phase: z.enum(["loading", "rollout", "scoring", "training", "validation", "saving", "idle"]),
  conversations: z.object({ done: count, generating: count, waiting_for_tools: count, total: count }),
  tokens_per_second: z.number().nonnegative(),
  seconds: z.object({
    rollout: seconds,
    scoring: seconds,
    training: seconds,
    validation: seconds,
    other: seconds,
  }),
  waiting_for_tools: seconds,
  eta: seconds.nullable(),
  cluster: clusterViewSchema.nullable().default(null),
});

/** The state as it stands in the file. */
export function formatLiveState(state: LiveState): string {
  const { conversations, tokensPerSecond, waitingForTools, ...same } = state;
  const { waitingForTools: waiting, ...counts } = conversations;
  const file: z.input<typeof liveFileSchema> = {
    format_version: 1,
    ...same,
    conversations: { ...counts, waiting_for_tools: waiting },
    tokens_per_second: tokensPerSecond,
    waiting_for_tools: waitingForTools,
  };
  return `${JSON.stringify(file)}\n`;
}

/**
 * What the training of a run folder does now. Null where none runs: there is no such file, it cannot be read, or the process that
 * wrote it is gone. Nothing is thrown.
 */
export async function readLiveState(folder: string): Promise<LiveState | null> {
  try {
    const read = liveFileSchema.parse(JSON.parse(await readFile(join(folder, LIVE_FILE), "utf8")));
    const { format_version: _, conversations, tokens_per_second, waiting_for_tools, ...same } = read;
    if (!isAlive(read.process)) return null;
    const { waiting_for_tools: waitingForTools, ...counts } = conversations;
    return {
      ...same,
      conversations: { ...counts, waitingForTools },
      tokensPerSecond: tokens_per_second,
      waitingForTools: waiting_for_tools,
    };
  } catch {
    return null;
  }
}
