import { setTimeout as sleep } from "node:timers/promises";
import type { Endpoint } from "@cria/serve";
import { CheckpointStore } from "@cria/trainer";
import type { Served } from "./open-served.js";

export interface FollowRunOptions {
  served: Served;
  endpoint: Endpoint;
  /** The run's folder. */
  run: string;
  /** Stops following. */
  signal: AbortSignal;
  /** Called with each checkpoint taken, and with damaged ones. */
  say: (text: string) => void;
  /** Milliseconds between two checks; default 1000. */
  everyMs?: number;
}

/**
 * Takes every newer checkpoint of a run. Running turns end first, and new requests wait, so none is lost; later tokens
 * are sampled from the newer weights.
 */
export async function followRun({
  served,
  endpoint,
  run,
  signal,
  say,
  everyMs = 1000,
}: FollowRunOptions): Promise<void> {
  const store = new CheckpointStore(run);
  let seen = served.model.policyVersion;
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    const [newest = seen] = await store.list();
    if (newest <= seen || signal.aborted) continue;
    // A damaged one is not tried again.
    seen = newest;
    try {
      const checkpoint = await store.findNewest(say);
      if (!checkpoint || checkpoint.step <= served.model.policyVersion) continue;
      const { gate } = endpoint;
      await gate.pause();
      try {
        await served.take(checkpoint);
      } finally {
        gate.resume();
      }
      say(`now serving the run after step ${checkpoint.step}`);
    } catch (error) {
      say(`a checkpoint was not taken\n  ${(error as Error).message}`);
    }
  }
}
