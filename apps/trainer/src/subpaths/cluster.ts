// `cria/cluster`: training on many machines.

export {
  type ClusterBus,
  LocalHub,
  type NatsBusOptions,
  openLocalBus,
  openNatsBus,
  type RunningWorker,
  type StartWorkerOptions,
  startWorker,
  type WorkerStatus,
} from "@cria/cluster";
