import type { TrainingBus } from "@cria/trainer";
import type { JobBus } from "./bus/job-bus.js";
import { coordinate } from "./coordinator/coordinate.js";
import { Leader } from "./coordinator/lead.js";
import { findStoredCheckpoint } from "./coordinator/stored-checkpoints.js";

/** A bus of jobs that trainings share their work over: `train({ bus })`. */
export interface ClusterBus extends JobBus, TrainingBus {}

/** @param name of the bus in texts for people: no secret. */
export function toClusterBus(bus: JobBus, name: string): ClusterBus {
  const leader = new Leader(bus);
  return {
    ...bus,
    lead: (...given) => leader.lead(...given),
    findCheckpoint: (run) => findStoredCheckpoint(bus, leader, run),
    coordinate: (run) => coordinate({ bus, name, leader }, run),
  };
}
