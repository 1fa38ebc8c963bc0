import { setTimeout as delay } from "node:timers/promises";
import type { ClusterView } from "@cria/records";
import type { CoordinatedRun } from "@cria/trainer";
import { WITHOUT_TRAINING } from "../jobs/job-kinds.js";

const LOOK_MS = 200;

/**
 * Waits until that many workers hold conversations, and reports what the others do or lack.
 * @throws the signal's reason.
 */
export async function waitForWorkers(
  wanted: number,
  count: () => number,
  listWorkers: () => ClusterView["workers"],
  { report, signal }: Pick<CoordinatedRun, "report" | "signal">,
): Promise<void> {
  const say = (text: string) => report?.({ type: "notice", text });
  const told = new Set<string>();
  if (count() < wanted) say(`waiting for ${wanted} ${wanted === 1 ? "worker" : "workers"}`);
  while (count() < wanted) {
    await delay(LOOK_MS, undefined, { signal });
    for (const { id, reason } of listWorkers()) {
      const text = `worker ${id}: ${reason}`;
      if (reason === null || reason === WITHOUT_TRAINING || told.has(text)) continue;
      told.add(text);
      say(text);
    }
  }
}
