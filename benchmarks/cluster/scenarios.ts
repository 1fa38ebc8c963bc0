/** What is simulated: models, places, designs, and numbers of workers. */
import type { MeasuredInputs } from "./inputs.js";
import { type Explained, explainStep } from "./simulation/explain-step.js";
import { shapes, type Training } from "./simulation/models.js";
import { type Design, makeLocal, type Network, type Setup, scaleCosts } from "./simulation/setup.js";
import { simulateStep } from "./simulation/step.js";
import { defaultWorkload, type Workload } from "./simulation/workload.js";

const GBIT = 1e9 / 8;
/** Conversations that a worker holds at once. */
export const SLOTS = 32;
/** For each worker, where the batch grows with them. */
export const GROWN_CONVERSATIONS = 16;

export interface Place {
  network: Network;
  /** Numbers of workers. */
  workers: readonly number[];
}

const near = { sites: 1, lineRate: Number.POSITIVE_INFINITY, lineRoundTrip: 0 };

export const places = {
  desk: {
    network: { ...near, serverRate: 1 * GBIT, workerRate: 1 * GBIT, roundTrip: 3e-4 },
    workers: [1, 2, 3, 4, 8],
  },
  rack: {
    network: { ...near, serverRate: 25 * GBIT, workerRate: 10 * GBIT, roundTrip: 1e-4 },
    workers: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000],
  },
  sites: {
    network: {
      sites: 8,
      lineRate: 1 * GBIT,
      lineRoundTrip: 0.04,
      serverRate: 25 * GBIT,
      workerRate: 10 * GBIT,
      roundTrip: 1e-4,
    },
    workers: [8, 64, 256, 1000],
  },
} as const satisfies Record<string, Place>;

export type PlaceName = keyof typeof places;

const today: Design = {
  microBatchTokens: [512],
  sum: "flat",
  workersPerLeaf: null,
  piecesInFlight: 1,
  hashing: "measured",
  auditTime: null,
};
const set: Design = { ...today, microBatchTokens: [512, 2048, 8192, 32_768], auditTime: 0.1 };
const fast: Design = { ...set, piecesInFlight: 16, hashing: "native" };
const tree: Design = { ...fast, microBatchTokens: [512], sum: "tree", workersPerLeaf: 32 };

/** Each takes the one before further. */
export const designs = { today, set, fast, tree } as const satisfies Record<string, Design>;
export type DesignName = keyof typeof designs;

export interface Scenario {
  model: keyof typeof shapes;
  training: Training;
  speed: number;
  place: PlaceName;
  /** A batch that grows has 16 conversations for each worker, and at least 1,024; a fixed one has 1,024. */
  batch: "grows" | "fixed";
  design: DesignName;
}

export const titleOf = ({ model, training, speed, place, batch, design }: Scenario): string =>
  `simulated: ${model} ${training === "lora" ? "LoRA" : "full"}, workers x ${speed}, ${place}, batch ${batch}: ${design}`;

/** Workers as measured, and as fast as somebody's GPUs may be. */
export const SPEEDS = [1, 50] as const;
/** Models and speeds of the panels; full training is simulated with fast workers alone. */
export const subjects: readonly Pick<Scenario, "model" | "training" | "speed">[] = [
  ...SPEEDS.map((speed) => ({ training: "lora" as const, speed })),
  { training: "full" as const, speed: SPEEDS[1] },
].flatMap((kind) => (Object.keys(shapes) as Scenario["model"][]).map((model) => ({ ...kind, model })));

const designNames = Object.keys(designs) as DesignName[];

export const scenarios: readonly Scenario[] = subjects.flatMap((subject) => {
  const make = (place: PlaceName, batch: Scenario["batch"], names: readonly DesignName[]) =>
    names.map((design): Scenario => ({ ...subject, place, batch, design }));
  return [
    ...(subject.training === "lora" ? make("desk", "fixed", ["today", "set"]) : []),
    ...make("rack", "grows", designNames),
    ...make("rack", "fixed", ["tree"]),
    ...make("sites", "grows", ["set", "fast", "tree"]),
  ];
});

export interface Point extends Omit<Explained, "times"> {
  workers: number;
  conversations: number;
  seconds: number;
  broadcast: number;
  rollout: number;
  score: number;
  gradient: number;
  optimizer: number;
  /** Gradient jobs. */
  parts: number;
}

/** One point for each of the place's numbers of workers. */
export function simulateScenario(scenario: Scenario, inputs: MeasuredInputs): Point[] {
  return places[scenario.place].workers.map((workers) => simulatePoint(scenario, workers, inputs));
}

export function simulatePoint(scenario: Scenario, workers: number, inputs: MeasuredInputs): Point {
  const setup = makeSetup(scenario, workers, inputs);
  const { times, ...explained } = explainStep(setup, simulateAlone(setup));
  const { total: seconds, microBatchTokens: _, ...phases } = times;
  const { prompts, samples } = setup.workload;
  return { workers, conversations: prompts * samples, seconds, ...phases, ...explained };
}

export function makeSetup(scenario: Scenario, workers: number, inputs: MeasuredInputs): Setup {
  const { model, training, speed, place, batch } = scenario;
  const design = designs[scenario.design];
  const { samples } = defaultWorkload;
  const grown = Math.ceil((GROWN_CONVERSATIONS * workers) / samples);
  const prompts = batch === "grows" ? Math.max(defaultWorkload.prompts, grown) : defaultWorkload.prompts;
  const workload: Workload = { ...defaultWorkload, prompts };
  const length = workload.promptTokens + workload.sampledTokens + (workload.turns - 1) * workload.toolTokens;
  const shape = shapes[model];
  const costs = scaleCosts(inputs, { shape, training, length, hashing: design.hashing });
  return { shape, training, workers, speed, slots: SLOTS, workload, network: places[place].network, design, costs };
}

/** One process with the best micro-batches: what all efficiencies are against. */
const simulateAlone = (setup: Setup) =>
  simulateStep(makeLocal({ ...setup, design: { ...setup.design, microBatchTokens: [512] } })).total;
