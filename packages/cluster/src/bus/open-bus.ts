import type { BusStore } from "./bus-store.js";
import { BusWorker } from "./bus-worker.js";
import { Directory } from "./directory.js";
import type { BusOptions, JobBus } from "./job-bus.js";
import { acquireLease, type HeldLease } from "./lease.js";
import { publishPolicy, readPolicy, watchPolicy } from "./policy-pointer.js";
import { Submitter } from "./submitter.js";

/** A bus over a store: everything but how messages, records and blobs are kept. */
export function openBus(store: BusStore, { maxOutstanding = 1024, onProblem = () => {} }: BusOptions = {}): JobBus {
  const directory = new Directory(store, onProblem as (problem: Error) => void);
  const submitter = new Submitter(store, directory, { maxOutstanding, onProblem });
  const workers = new Set<BusWorker>();
  const leases = new Set<HeldLease>();

  return {
    submit: (kind, payload, options) => submitter.submit(kind, payload, options),
    async work(options) {
      const worker = new BusWorker(store, options, onProblem);
      await worker.start();
      workers.add(worker);
      return worker;
    },
    blobs: store.blobs,
    readPolicy: () => readPolicy(store),
    publishPolicy: (policy, seen) => publishPolicy(store, policy, seen),
    watchPolicy: (onPolicy, signal) => watchPolicy(store, onPolicy, signal, onProblem),
    listWorkers: () => directory.list(),
    async watchWorkers(onWorkers, signal) {
      const tell = () => void directory.list().then((list) => signal.aborted || onWorkers(list));
      await directory.watch(tell, signal);
      tell();
    },
    async acquireLease(holder, signal) {
      const signals = signal ? [signal, store.closed] : [store.closed];
      const lease = await acquireLease(store, holder, AbortSignal.any(signals));
      leases.add(lease);
      return lease;
    },
    stats: submitter.stats,
    async close() {
      await submitter.close();
      await Promise.all([...workers].map((worker) => worker.close()));
      await Promise.all([...leases].map((lease) => lease.release()));
      await store.close();
    },
  };
}
