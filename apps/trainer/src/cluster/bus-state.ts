import { setTimeout as sleep } from "node:timers/promises";
import type { JobBus, PolicyPointer, WorkerInfo } from "@cria/cluster";

/** Milliseconds between two checks for changes, since busy workers report all the time. */
const EVERY_MS = 500;

/** The public state of a bus. */
export interface BusState {
  /** Null before the first is published. */
  policy: PolicyPointer | null;
  /** Present workers, by id. */
  workers: WorkerInfo[];
}

/** The current state. */
export async function readBusState(bus: JobBus): Promise<BusState> {
  const [policy, workers] = await Promise.all([bus.readPolicy(), bus.listWorkers()]);
  return { policy: policy ? takePointer(policy) : null, workers };
}

const takePointer = ({ run, version, weights }: PolicyPointer): PolicyPointer => ({ run, version, weights });

/**
 * Calls with the current state and after each change, at most twice a second, until the signal is aborted.
 * @throws ClusterError "cluster/shut-out" when the server shuts this user out.
 */
export async function followBusState(
  bus: JobBus,
  onState: (state: BusState) => void,
  signal: AbortSignal,
): Promise<void> {
  const state = await readBusState(bus);
  await bus.watchPolicy((policy) => {
    state.policy = takePointer(policy);
  }, signal);
  await bus.watchWorkers((workers) => {
    state.workers = workers;
  }, signal);
  let said = "";
  while (!signal.aborted) {
    bus.closed.throwIfAborted();
    const text = JSON.stringify(state);
    if (text !== said) onState(state);
    said = text;
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}
