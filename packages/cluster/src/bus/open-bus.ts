import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { type BusStore, limitTo, persist } from "./bus-store.js";
import { BusWorker } from "./bus-worker.js";
import { nameCheckpoint, takeCheckpoint } from "./checkpoint-pointer.js";
import { Directory } from "./directory.js";
import type { BusOptions, JobBus, StoreLoss } from "./job-bus.js";
import { acquireLease, type HeldLease } from "./lease.js";
import { publishPolicy, readPolicy, watchPolicy } from "./policy-pointer.js";
import { Submitter } from "./submitter.js";

/** Time that calls wait for an unreachable server, and `close` for a clean end. */
const AWAY_MS = 120_000;
const CLOSE_MS = 10_000;

/** A bus over a store, which keeps messages, records and blobs. */
export function openBus(store: BusStore, options: BusOptions = {}): JobBus {
  const { maxOutstanding = Number.POSITIVE_INFINITY } = options;
  const problems = new Set<(problem: ClusterError) => void>([options.onProblem ?? (() => {})]);
  const losses = new Set<(loss: StoreLoss) => void>();
  const onProblem = (problem: ClusterError) => {
    for (const listener of problems) listener(problem);
  };
  store.onLoss((loss) => {
    onProblem(loss.problem);
    for (const listener of losses) listener(loss);
  });
  const directory = new Directory(store, onProblem);
  const submitter = new Submitter(store, directory, { maxOutstanding, onProblem });
  const workers = new Set<BusWorker>();
  const leases = new Set<HeldLease>();

  // This side did not close it: calls that wait for results would wait for ever.
  const onClosed = () => {
    const { reason } = store.closed;
    if (!(reason instanceof ClusterError)) return;
    onProblem(reason);
    void submitter.close(reason);
  };
  if (store.closed.aborted) onClosed();
  store.closed.addEventListener("abort", onClosed, { once: true });

  const ask = <T>(what: string, call: () => Promise<T>) =>
    persist(store, call, limitTo(AWAY_MS), { what, report: onProblem });
  const listen = <T>(listeners: Set<T>, listener: T, signal: AbortSignal) => {
    listeners.add(listener);
    signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
  };

  return {
    submit: (kind, payload, options) => submitter.submit(kind, payload, options),
    async work(options) {
      const worker = new BusWorker(store, options, onProblem);
      // A busy server may swallow a request: joining must not fail because of one.
      await ask("to list a worker", () => worker.start());
      workers.add(worker);
      return worker;
    },
    blobs: {
      put: (bytes) => ask("to store a blob", () => store.blobs.put(bytes)),
      get: (sha) => ask("for a blob", () => store.blobs.get(sha)),
      has: (sha) => ask("whether it has a blob", () => store.blobs.has(sha)),
      delete: (sha) => ask("to drop a blob", () => store.blobs.delete(sha)),
    },
    readPolicy: () => ask("for the policy", () => readPolicy(store)),
    publishPolicy: (policy, seen) => ask("to publish a policy", () => publishPolicy(store, policy, seen)),
    watchPolicy: (onPolicy, signal) =>
      ask("to follow the policy", () => watchPolicy(store, onPolicy, signal, onProblem)),
    takeCheckpoint: (run, term) => ask("for the newest checkpoint", () => takeCheckpoint(store, run, term)),
    nameCheckpoint: (pointer) => ask("to name a checkpoint", () => nameCheckpoint(store, pointer)),
    listWorkers: () => directory.list(),
    async watchWorkers(onWorkers, signal) {
      const tell = () =>
        void directory.list().then(
          (list) => signal.aborted || onWorkers(list),
          () => {},
        );
      await ask("to follow who is there", () => directory.watch(tell, signal));
      tell();
    },
    async acquireLease(holder, signal, onWait) {
      const signals = signal ? [signal, store.closed] : [store.closed];
      const lease = await acquireLease(store, holder, AbortSignal.any(signals), onWait);
      leases.add(lease);
      return lease;
    },
    watchLosses: (onLoss, signal) => listen(losses, onLoss, signal),
    watchProblems: (listener, signal) => listen(problems, listener, signal),
    stats: submitter.stats,
    closed: store.closed,
    async close() {
      const leave = async () => {
        await submitter.close();
        await Promise.all([...workers].map((worker) => worker.close()));
        await Promise.all([...leases].map((lease) => lease.release()));
      };
      await Promise.race([leave(), delay(CLOSE_MS, undefined, { ref: false })]);
      await store.close();
    },
  };
}
