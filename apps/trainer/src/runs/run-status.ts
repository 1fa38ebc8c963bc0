import { join, resolve } from "node:path";
import { readLiveState } from "@cria/trainer";
import { RunLock } from "@cria/trainer/internal";
import type { LiveState, RunStatus } from "@cria/viewer/api";
import { z } from "zod";
import { readSmallJson } from "./read-small-json.js";

const endSchema = z.object({ status: z.enum(["ended", "failed", "interrupted"]), error: z.string().nullish() });

/** Milliseconds after which live.json is stale; a run writes it about once a second. */
const FRESH = 30_000;

/** The present work of a run; null when no process trains it. */
export async function readLive(path: string, now = Date.now()): Promise<LiveState | null> {
  const live = await readLiveState(path);
  return live && Math.abs(now - live.at) < FRESH ? live : null;
}

export interface StatusFacts {
  live: LiveState | null;
  step: number;
  total: number | null;
  /** True if it wrote anything besides its config. */
  hasResults: boolean;
  /** True if its command writes all results at once, at its end. */
  isWhole: boolean;
}

/** Status of a run: in progress, or how it ended; `error` is the cause of its end. */
export async function readStatus(
  path: string,
  { live, step, total, hasResults, isWhole }: StatusFacts,
): Promise<{ status: RunStatus; error: string | null }> {
  if (live || RunLock.isHeld(resolve(path))) return { status: "running", error: null };
  const { data: end } = endSchema.safeParse(await readSmallJson(join(path, "end.json")));
  if (end?.status === "failed") return { status: "failed", error: end.error ?? "" };
  if (!hasResults) return { status: "empty", error: null };
  if (end?.status === "ended" || isWhole) return { status: "ended", error: null };
  // Runs of older versions do not record their end.
  const isDone = end === undefined && total !== null && step >= total;
  return { status: isDone ? "ended" : "stale", error: null };
}
