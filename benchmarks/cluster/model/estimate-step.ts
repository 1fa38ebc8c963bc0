import type { MeasuredInputs } from "../inputs.js";
import { countBackward, countForward, countTrained, type Shape, shapes, type Training } from "./shapes.js";

/** Input of an estimate: the model, the number of machines, the wire. */
export interface StepSetup {
  shape: Shape;
  training: Training;
  /** At least 1. The coordinator is a further machine that only coordinates. */
  workers: number;
  /** Speed of jobs relative to the measured machine. CPUs that send, hash and add are not faster. */
  speed: number;
  /** Tokens of a micro-batch, each of which gives one gradient (`actor.ppo_max_token_len`). */
  microBatchTokens: number;
  /** Wire of the server's machine, each way. */
  gbitPerSecond: number;
}

/** The work of a step. */
export const workload = {
  /** The batch grows with the workers: this many conversations for each, and at least `conversations`. */
  conversationsPerWorker: 16,
  conversations: 1024,
  sampledTokens: 400,
  /** The prompt, and the answers of tools. */
  givenTokens: 448,
  /** Share of the jobs that the coordinator computes again (`cluster.audit`). */
  auditShare: 0.01,
};

/** A float. */
export const WEIGHT_BYTES = 4;
/** Tokens of the sequences that were measured. */
const MEASURED_LENGTH = { sampled: 96, scored: 256, trained: 256 };
const NANO = 1e-9;

/** Activities that a step spends time on. */
export type Cost = "jobs" | "weights" | "gradients" | "sums" | "audits" | "messages" | "wire" | "optimizer";
type Seconds = Partial<Record<Cost, number>>;

export interface StepEstimate {
  /** Time of one process without a bus, divided by the step's. */
  speedup: number;
  /** Seconds by activity; their sum is the step. */
  seconds: Seconds;
}

/**
 * One optimizer step in closed form. A phase takes as long as its slowest concurrent activity. Work is spread evenly: a
 * real step also waits for its longest conversation, and is slower than this.
 */
export function estimateStep(setup: StepSetup, inputs: MeasuredInputs): StepEstimate {
  const work = estimateWork(setup, inputs);
  const seconds = sumUp(listPhases(setup, inputs, work).map(findSlowest));
  return { speedup: (work.rollouts + work.gradients + work.optimizer) / total(seconds), seconds };
}

interface Work {
  conversations: number;
  tokens: number;
  /** Trained weights. */
  weights: number;
  /** Seconds of one worker for all rollouts and scores, and for all gradients; of the coordinator for the optimizer. */
  rollouts: number;
  gradients: number;
  optimizer: number;
}

/** Times of jobs go with the operations of a token, those of the optimizer with the trained weights. */
function estimateWork({ shape, training, workers, speed }: StepSetup, inputs: MeasuredInputs): Work {
  const { sampledTokens, givenTokens } = workload;
  const conversations = Math.max(workload.conversations, workload.conversationsPerWorker * workers);
  const length = sampledTokens + givenTokens;
  const tokens = conversations * length;
  const small = shapes["0.5B"];
  const forward = (rate: number, at: number) => (rate * countForward(small, at) * speed) / countForward(shape, length);
  const scored = forward(inputs.scored, MEASURED_LENGTH.scored);
  const operations = countBackward(small, MEASURED_LENGTH.trained, "lora") / countBackward(shape, length, training);
  const weights = countTrained(shape, training);
  return {
    conversations,
    tokens,
    weights,
    rollouts:
      (conversations * sampledTokens) / forward(inputs.sampled32, MEASURED_LENGTH.sampled) +
      (conversations * (givenTokens + length)) / scored,
    gradients: tokens / (inputs.trained * operations * speed),
    optimizer: weights * inputs.optimize * NANO,
  };
}

/** Phase by phase, the times of its concurrent activities. */
function listPhases(setup: StepSetup, inputs: MeasuredInputs, work: Work): Seconds[][] {
  const { workers, microBatchTokens, gbitPerSecond } = setup;
  const bytes = work.weights * WEIGHT_BYTES;
  const perByte = 8e-9 / gbitPerSecond;
  const count = Math.ceil(work.tokens / microBatchTokens);
  // A worker that has no micro-batch left waits for those that have one more.
  const most = Math.ceil(count / workers);
  const { auditShare } = workload;
  const messages = (jobs: number) => jobs * inputs.coordinatorJob * 1e-6;
  return [
    [
      {
        weights:
          bytes * (1 / inputs.readWeights + (inputs.clientPut + inputs.clientGet) * NANO + 1 / inputs.writeWeights),
      },
      { wire: workers * bytes * Math.max(perByte, inputs.serverGet * NANO) },
    ],
    [
      { jobs: work.rollouts / workers },
      { audits: auditShare * work.rollouts },
      { messages: messages(2 * work.conversations) },
    ],
    [
      { jobs: (most * work.gradients) / count, gradients: most * bytes * inputs.clientPut * NANO },
      { sums: count * (bytes * inputs.clientGet + work.weights * inputs.add) * NANO },
      { audits: auditShare * work.gradients },
      { messages: messages(count) },
      { wire: count * bytes * Math.max(perByte, inputs.serverPut * NANO) },
    ],
    [{ optimizer: work.optimizer }],
  ];
}

const total = (seconds: Seconds) => Object.values(seconds).reduce((sum, value) => sum + value, 0);
const findSlowest = (phase: readonly Seconds[]) => phase.reduce((a, b) => (total(b) > total(a) ? b : a));

function sumUp(phases: readonly Seconds[]): Seconds {
  const sum: Seconds = {};
  for (const phase of phases)
    for (const [cost, value] of Object.entries(phase) as [Cost, number][]) sum[cost] = (sum[cost] ?? 0) + value;
  return sum;
}

/** The activity that takes most of the step. */
export function findLimit({ seconds }: StepEstimate): Cost {
  return (Object.entries(seconds) as [Cost, number][]).reduce((a, b) => (b[1] > a[1] ? b : a))[0];
}
