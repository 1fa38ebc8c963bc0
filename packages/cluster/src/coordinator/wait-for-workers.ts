import { setTimeout as delay } from "node:timers/promises";
import type { ClusterView, CoordinatedRun } from "@cria/trainer";

const LOOK_MS = 200;

/**
 * Waits until as many workers hold conversations, and says what those lack that do not.
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
    for (const { id, class: of, reason } of listWorkers()) {
      // One without a class has not looked for all that it needs.
      const text = `worker ${id}: ${reason}`;
      if (of === "" || reason === null || told.has(text)) continue;
      told.add(text);
      say(text);
    }
  }
}
