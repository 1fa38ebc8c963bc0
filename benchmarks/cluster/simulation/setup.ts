import type { MeasuredInputs } from "../inputs.js";
import { countBackward, countForward, countTrained, type Shape, shapes, type Training } from "./models.js";
import type { Workload } from "./workload.js";

/** What carries the messages. Rates are bytes per second, times seconds; all may be infinite or 0. */
export interface Network {
  /** Of the machine with nats-server and coordinator, each way. */
  serverRate: number;
  /** Of each worker, each way. */
  workerRate: number;
  /** There and back within a site. */
  roundTrip: number;
  /** Places that are far from each other; the server is in the first. 1: all are near. */
  sites: number;
  /** Of the line of each other site, each way. */
  lineRate: number;
  /** There and back between sites. */
  lineRoundTrip: number;
}

/** How the policy and the gradients travel. */
export interface Design {
  /** Tokens of a micro-batch; several: the best of them is taken. */
  microBatchTokens: readonly number[];
  /** Who adds: the coordinator, one gradient after another; or workers, along a fixed binary tree over the plan. */
  sum: "flat" | "tree";
  /** Servers beside the first that keep blobs near workers: none, or one for so many workers (on many sites: one a site). */
  workersPerLeaf: number | null;
  /** Pieces of 128 KiB of a blob that are on their way before the first is acknowledged. */
  piecesInFlight: number;
  /** How blobs are hashed: as measured, or with Node's own SHA-256. */
  hashing: "measured" | "native";
  /** Share of its time that the coordinator spends on audits at most, by auditing fewer jobs; null: the workload's share. */
  auditTime: number | null;
}

export interface Setup {
  shape: Shape;
  training: Training;
  workers: number;
  /** How many times faster workers do jobs than the measured machine: an assumption of who asks. */
  speed: number;
  /** Conversations that a worker holds at once. */
  slots: number;
  workload: Workload;
  network: Network;
  design: Design;
  costs: Costs;
}

/** Seconds and rates of what is done, scaled from what was measured. */
export interface Costs {
  /** Tokens per second of a worker with 1, 8 and 32 conversations at once. */
  sampled: readonly [conversations: number, rate: number][];
  /** Tokens per second of a score job, and of evaluating a prompt. */
  scored: number;
  /** Tokens per second of a gradient job. */
  trained: number;
  /** Weights of a gradient and of a broadcast. */
  weights: number;
  /** Seconds to add a gradient. */
  addSeconds: number;
  /** Seconds from the sum to new weights. */
  stepSeconds: number;
  /** Seconds to read the trained weights from the coordinator's engine, and to write them into a worker's. */
  readSeconds: number;
  writeSeconds: number;
  /** Bytes per second that one client's CPU can send as blobs, and receive. */
  clientPut: number;
  clientGet: number;
  /** Bytes per second that one server can write to a stream, and read for all who ask. */
  serverPut: number;
  serverGet: number;
  /** The coordinator's seconds for a job. */
  jobSeconds: number;
}

/** A float. */
export const WEIGHT_BYTES = 4;
export const PIECE_BYTES = 128 * 1024;
/** Cores of the server's machine; one writes a stream, all read. */
export const SERVER_CORES = 8;
/** Round trips of a job: taken, its record read and written before and after, and the news of it. Counted in the source. */
export const JOB_ROUND_TRIPS = 5;
/** Of a blob beside its pieces: whether it is there, its description, a consumer. */
export const BLOB_ROUND_TRIPS = 4;
/**
 * A client's CPU per byte of a blob with Node's own SHA-256 and 16 pieces in flight: what a trial program needed on an AMD EPYC
 * (Zen 4), to put and to get.
 */
export const FAST_BLOB_NANOSECONDS = 3.5;
/** JSON of a token in a job, and in a result. */
export const JOB_TOKEN_BYTES = 40;
export const RESULT_TOKEN_BYTES = 30;

/** Lengths of what was measured. */
const MEASURED = { sampled: 96, scored: 256, trained: 256 };

/** Job times go with the operations of a token; what is done with gradients goes with the weights that are trained. */
export function scaleCosts(
  inputs: MeasuredInputs,
  { shape, training, length, hashing }: { shape: Shape; training: Training; length: number } & Pick<Design, "hashing">,
): Costs {
  const small = shapes["0.5B"];
  const forward = (measuredAt: number) => countForward(small, measuredAt) / countForward(shape, length);
  const weights = countTrained(shape, training);
  const nanoseconds = 1e-9;
  const blobRate = (client: number) => 1 / ((hashing === "native" ? FAST_BLOB_NANOSECONDS : client) * nanoseconds);
  return {
    sampled: ([1, 8, 32] as const).map((n) => [n, inputs[`sampled${n}`] * forward(MEASURED.sampled)]),
    scored: inputs.scored * forward(MEASURED.scored),
    trained: (inputs.trained * countBackward(small, MEASURED.trained, "lora")) / countBackward(shape, length, training),
    weights,
    addSeconds: weights * inputs.add * nanoseconds,
    stepSeconds: weights * inputs.optimize * nanoseconds,
    readSeconds: (weights * WEIGHT_BYTES) / inputs.readWeights,
    writeSeconds: (weights * WEIGHT_BYTES) / inputs.writeWeights,
    clientPut: blobRate(inputs.clientPut),
    clientGet: blobRate(inputs.clientGet),
    serverPut: 1 / (inputs.serverPut * nanoseconds),
    serverGet: SERVER_CORES / (inputs.serverGet * nanoseconds),
    jobSeconds: inputs.coordinatorJob * 1e-6,
  };
}

/** The share of jobs that the coordinator computes again. */
export function auditShareOf({ workload, design, workers }: Setup): number {
  // A share of all work is that share of all workers' time, for the coordinator alone.
  return design.auditTime === null ? workload.auditShare : Math.min(workload.auditShare, design.auditTime / workers);
}

/** The same in one process: nothing travels, and nobody coordinates or audits. The optimizer steps all the same. */
export function makeLocal(setup: Setup): Setup {
  const free = Number.POSITIVE_INFINITY;
  return {
    ...setup,
    workload: { ...setup.workload, auditShare: 0 },
    workers: 1,
    network: { serverRate: free, workerRate: free, roundTrip: 0, sites: 1, lineRate: free, lineRoundTrip: 0 },
    design: { ...setup.design, sum: "flat", workersPerLeaf: null },
    costs: {
      ...setup.costs,
      addSeconds: 0,
      readSeconds: 0,
      writeSeconds: 0,
      clientPut: free,
      clientGet: free,
      serverPut: free,
      serverGet: free,
      jobSeconds: 0,
    },
  };
}
