/**
 * The four sides of the decode benchmark in one setting each. Cases are numbers of sequences; figures tokens per
 * second.
 */

import { runBatchedBench } from "../peers/batched-bench.js";
import { NodeLlamaDecoder } from "../peers/node-llama-cpp.js";
import type { Contender, Setting } from "../settings.js";
import { nameSetting } from "../settings.js";
import { CriaDecoder } from "./cria-decoder.js";

export interface Task {
  title: string;
  path: string;
  /** Most sequences at once. */
  sequences: number;
  /** Tokens that all sequences begin with. */
  promptLength: number;
  /** Tokens that each sequence samples in a run of this many sequences. */
  getSteps(sequences: number, isTrial: boolean): number;
}

export const SHORT_PROMPT = 16;

export const nameSubject = (model: string, type: string, promptLength: number) =>
  `${model} ${type}${promptLength === SHORT_PROMPT ? "" : ` behind ${promptLength / 1024}k tokens`}`;

/** Further measurements of our runs. */
export interface OurContender extends Contender<number> {
  /** Share of each run's time outside llama_decode, by the number of sequences. */
  outside: Map<number, number[]>;
}

/**
 * Tokens of one sequence: prompt, two that are given, and up to 237 steps. One less than the size that a KV stream is
 * rounded to.
 */
const getContext = ({ promptLength }: Task) => Math.ceil((promptLength + 239) / 256) * 256 - 1;

const describe = (task: Task, { flashAttention, threads }: Setting) => ({
  path: task.path,
  sequences: task.sequences,
  contextSize: getContext(task),
  flashAttention,
  threads,
  prompt: makeTokens(task.promptLength, 0),
});

export async function openOurs(task: Task, setting: Setting, deterministic: boolean): Promise<OurContender> {
  const decoder = await CriaDecoder.load({ ...describe(task, setting), deterministic });
  const outside: OurContender["outside"] = new Map();
  const decode = async (count: number, isTrial: boolean) => {
    const steps = task.getSteps(count, isTrial);
    await decoder.prepare(makeTokens(count, 1));
    const { logprobs, seconds, llamaSeconds } = await decoder.run(makeTokens(count, 2), steps, 1);
    const all = logprobs.flat();
    if (all.length !== count * steps || !all.every((x) => x <= 0 && x > -100))
      throw new Error(`${task.title}: logprobs are missing or out of range`);
    if (!isTrial) outside.set(count, [...(outside.get(count) ?? []), 1 - llamaSeconds / seconds]);
    return (count * steps) / seconds;
  };
  return {
    side: nameOurs(deterministic),
    setting: nameSetting(setting),
    outside,
    run: (counts, isTrial) => runEach(counts, (count) => decode(count, isTrial)),
    dispose: () => decoder.dispose(),
  };
}

export const nameOurs = (deterministic: boolean) => `ours, deterministic: ${deterministic}`;

export async function openNode(task: Task, setting: Setting): Promise<Contender<number>> {
  const decoder = await NodeLlamaDecoder.load({ ...describe(task, setting), contextSize: getContext(task) + 1 });
  const decode = async (count: number, isTrial: boolean) => {
    const steps = task.getSteps(count, isTrial);
    await decoder.prepare(count);
    const started = performance.now();
    const tokens = await decoder.run(makeTokens(count, 2), steps, 1);
    const seconds = (performance.now() - started) / 1000;
    if (tokens.flat().length !== count * steps) throw new Error(`${task.title}: node-llama-cpp sampled too little`);
    return (count * steps) / seconds;
  };
  return {
    side: "node-llama-cpp",
    setting: nameSetting(setting),
    run: (counts, isTrial) => runEach(counts, (count) => decode(count, isTrial)),
    dispose: () => decoder.dispose(),
  };
}

/** A process for each number of steps. */
export function openBatched(task: Task, setting: Setting, log: (text: string) => void): Contender<number> {
  const { promptLength } = task;
  const options = { ...describe(task, setting), contextSize: getContext(task) + 1, promptLength };
  return {
    side: "llama-batched-bench",
    setting: nameSetting(setting),
    run: async (counts, isTrial) => {
      const speeds = new Map<number, number>();
      const getSteps = (count: number) => task.getSteps(count, isTrial);
      for (const steps of new Set(counts.map(getSteps))) {
        const sequences = counts.filter((count) => getSteps(count) === steps);
        for (const [count, speed] of await runBatchedBench({ ...options, steps, sequences }, log))
          speeds.set(count, speed);
      }
      return speeds;
    },
    dispose: async () => {},
  };
}

async function runEach(counts: readonly number[], decode: (count: number) => Promise<number>) {
  const figures = new Map<number, number>();
  for (const count of counts) figures.set(count, await decode(count));
  return figures;
}

/** Most that rounding may part the two likeliest tokens of weights that are random, in nats. */
const CLOSE = 0.2;

/**
 * Both evaluate the same, in the same order: greedy tokens of one sequence must be equal, up to the first that another
 * one nearly equals. Products round differently, and weights are random.
 */
export async function compareGreedy(task: Task, setting: Setting): Promise<void> {
  const options = { ...describe(task, setting), sequences: 1 };
  const ours = await CriaDecoder.load({ ...options, deterministic: false });
  const node = await NodeLlamaDecoder.load({ ...options, contextSize: getContext(task) + 1 });
  const [first, next] = [makeTokens(1, 1), makeTokens(1, 2)];
  await ours.prepare(first);
  await node.prepare(1, first);
  const run = await ours.run(next, 8, 0, 8);
  const [[mine], [top]] = [run.tokens, run.top];
  const [theirs] = await node.run(next, 8, 0);
  await Promise.all([ours.dispose(), node.dispose()]);
  const place = mine!.findIndex((token, i) => token !== theirs![i]);
  if (place < 0) return;
  const chosen = top![place]!.find(({ id }) => id === theirs![place]);
  if (!chosen || top![place]![0]!.logprob - chosen.logprob > CLOSE)
    throw new Error(
      `${task.title}: greedy tokens differ: ${mine} and node-llama-cpp's ${theirs}, by ${top![place]![0]!.logprob - (chosen?.logprob ?? -Infinity)} nats`,
    );
}

/** Ordinary tokens of any of the vocabularies: the smallest has 640, and the first 256 are bytes or control tokens. */
function makeTokens(count: number, kind: number): number[] {
  return Array.from({ length: count }, (_, i) => 260 + ((7919 * (i + 1) + 104_729 * kind) % 350));
}
