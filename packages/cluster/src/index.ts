export {
  type Blobs,
  type BusOptions,
  type BusStats,
  type BusTimes,
  type CheckpointPointer,
  type JobBus,
  type JobContext,
  type JobHandler,
  type JobKind,
  type JobKindName,
  type JobResult,
  jobKindNames,
  type Lease,
  type PolicyPointer,
  type PublishedPolicy,
  type SubmitOptions,
  type Worker,
  type WorkerInfo,
  type WorkerOptions,
} from "./bus/job-bus.js";
export type { ClusterBus } from "./cluster-bus.js";
export { LocalHub } from "./local/local-store.js";
export { type LocalBusOptions, openLocalBus } from "./local/open-local-bus.js";
export type { NatsServers } from "./nats/connect-nats.js";
export type { NatsBounds } from "./nats/create-streams.js";
export type { Role } from "./nats/names.js";
export { type NatsBusOptions, openNatsBus } from "./nats/open-nats-bus.js";
export { describeNatsServer, listPermissions, type NatsServerConfig } from "./nats/server-config.js";
export {
  type RunningWorker,
  type StartWorkerOptions,
  startWorker,
  type WorkerStatus,
} from "./worker/start-worker.js";
