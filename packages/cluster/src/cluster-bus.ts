import type { TrainingBus } from "@cria/trainer";
import type { JobBus } from "./bus/job-bus.js";
import { coordinate } from "./coordinator/coordinate.js";
import { Leader } from "./coordinator/lead.js";
import { findStoredCheckpoint } from "./coordinator/stored-checkpoints.js";

/** A bus of jobs that trainings can be shared over: `train({ bus })`. */
export interface ClusterBus extends JobBus, TrainingBus {}

/** @param name how the bus is called before people: no secret. */
export function toClusterBus(bus: JobBus, name: string): ClusterBus {
  const leader = new Leader(bus);
  return {
    ...bus,
    lead: (...given) => leader.lead(...given),
    findCheckpoint: (run) => findStoredCheckpoint(bus, leader, run),
    coordinate: (run) => coordinate({ bus, name, leader }, run),
  };
}
