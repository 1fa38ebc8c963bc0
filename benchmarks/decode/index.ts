/**
 * Decoding: tokens per second of 1 to 64 sequences together, each with its own sampled continuation of one prompt. Peers:
 * node-llama-cpp's automatic batching, and llama.cpp's own llama-batched-bench, which samples nothing and is the limit.
 * All run on the same libraries with an F16 KV cache and as many threads as the process may use, but node-llama-cpp with one
 * for the embedded policy, where it is ten times as fast so. Ours and node-llama-cpp draw at temperature 1 from the whole
 * vocabulary; ours computes the logprobs too.
 */
import { availableParallelism } from "node:os";
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { getModelFile, type ModelName, type ModelType } from "../models/index.js";
import { runBatchedBench } from "../peers/batched-bench.js";
import { NodeLlamaDecoder } from "../peers/node-llama-cpp.js";
import type { Row } from "../row.js";
import { CriaDecoder } from "./cria-decoder.js";

const SEQUENCES = [1, 8, 32, 64];
const FEW = 8;
const ROUNDS = 5;
const PROMPT_LENGTH = 16;
/** Tokens of one sequence: prompt, two that are given, and the steps. One less than what a KV stream is rounded to. */
const CONTEXT = 255;
const THREADS = Number(process.env.CRIA_BENCHMARK_THREADS ?? availableParallelism());

interface Subject {
  title: string;
  getPath: () => Promise<string>;
  /** Tokens that each sequence samples in a round, when few (up to 8) and when many are decoded together. */
  steps: { few: number; many: number };
  /** Whether the time outside llama_decode has a target. */
  half: boolean;
  /** node-llama-cpp's, where its best is not all: two that spin keep its event loop from handing over the next token. */
  nodeThreads?: number;
}

function listSubjects(log: (text: string) => void): Subject[] {
  const shaped = (name: ModelName, type: ModelType, steps: Subject["steps"]): Subject => ({
    title: `${name} ${type}`,
    getPath: () => getModelFile(name, type, log),
    steps,
    half: name === "qwen2.5-0.5b",
  });
  return [
    {
      title: "cria-tiny F32",
      getPath: async () => embeddedPolicyPath,
      steps: { few: 64, many: 64 },
      half: false,
      nodeThreads: 1,
    },
    ...(["F16", "Q8_0", "Q4_K_M"] as const).map((type) => shaped("smollm2-135m", type, { few: 48, many: 6 })),
    ...(["F16", "Q8_0", "Q4_K_M"] as const).map((type) => shaped("qwen2.5-0.5b", type, { few: 24, many: 3 })),
  ];
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of listSubjects(log)) {
    const sequences = SEQUENCES.filter((count) => includes(nameCase(subject, count)));
    if (sequences.length > 0) rows.push(...(await measure(subject, sequences, log)));
  }
  return rows;
}

const nameCase = (subject: Subject, count: number) =>
  `${subject.title}, ${count} ${count === 1 ? "sequence" : "sequences"}`;

interface Speeds {
  ours: number[];
  repeatable: number[];
  node: number[];
  batched: number[];
  outside: number[];
}

async function measure(subject: Subject, sequences: number[], log: (text: string) => void): Promise<Row[]> {
  const path = await subject.getPath();
  const getSteps = (count: number) => (count <= FEW ? subject.steps.few : subject.steps.many);
  const most = Math.max(...sequences);
  const prompt = makeTokens(PROMPT_LENGTH, 0);
  const common = { path, threads: THREADS, flashAttention: FLASH_ATTENTION, sequences: most, prompt };
  const ours = await CriaDecoder.load({ ...common, contextSize: CONTEXT, deterministic: false });
  const repeatable = await CriaDecoder.load({ ...common, sequences: 1, contextSize: CONTEXT, deterministic: true });
  const node = await NodeLlamaDecoder.load({
    ...common,
    threads: subject.nodeThreads ?? THREADS,
    contextSize: CONTEXT + 1,
  });
  await compareGreedy(subject, ours, node);

  const speeds = new Map(
    sequences.map((count): [number, Speeds] => [
      count,
      { ours: [], repeatable: [], node: [], batched: [], outside: [] },
    ]),
  );
  const runOurs = async (decoder: CriaDecoder, count: number) => {
    const steps = getSteps(count);
    await decoder.prepare(makeTokens(count, 1));
    const result = await decoder.run(makeTokens(count, 2), steps, 1);
    const logprobs = result.logprobs.flat();
    if (logprobs.length !== count * steps || !logprobs.every((x) => x <= 0 && x > -100))
      throw new Error(`${subject.title}: logprobs are missing or out of range`);
    return { speed: (count * steps) / result.seconds, outside: 1 - result.llamaSeconds / result.seconds };
  };
  const runNode = async (count: number) => {
    const steps = getSteps(count);
    await node.prepare(count);
    const started = performance.now();
    const tokens = await node.run(makeTokens(count, 2), steps, 1);
    const seconds = (performance.now() - started) / 1000;
    if (tokens.flat().length !== count * steps) throw new Error(`${subject.title}: node-llama-cpp sampled too little`);
    return (count * steps) / seconds;
  };
  for (let round = 0; round < ROUNDS; round++) {
    const parts = [
      async () => {
        const options = { ...common, contextSize: CONTEXT + 1, promptLength: PROMPT_LENGTH };
        const groups = [sequences.filter((count) => count <= FEW), sequences.filter((count) => count > FEW)];
        for (const group of groups.filter(({ length }) => length > 0)) {
          const result = await runBatchedBench({ ...options, steps: getSteps(group[0]!), sequences: group }, log);
          for (const [count, speed] of result) speeds.get(count)!.batched.push(speed);
        }
      },
      async () => {
        for (const count of sequences) {
          const { speed, outside } = await runOurs(ours, count);
          speeds.get(count)!.ours.push(speed);
          speeds.get(count)!.outside.push(outside);
        }
        if (sequences.includes(1)) speeds.get(1)!.repeatable.push((await runOurs(repeatable, 1)).speed);
      },
      async () => {
        for (const count of sequences) speeds.get(count)!.node.push(await runNode(count));
      },
    ];
    // Another order each round.
    for (let i = 0; i < parts.length; i++) await parts[(i + round) % parts.length]!();
  }
  await Promise.all([ours.dispose(), repeatable.dispose(), node.dispose()]);
  return sequences.flatMap((count) => {
    const rows = makeRows(subject, count, speeds.get(count)!);
    for (const { metric, ours: value, peers } of rows)
      log(`${nameCase(subject, count)}: ${metric}: ${value} ${JSON.stringify(peers)}`);
    return rows;
  });
}

function makeRows(subject: Subject, count: number, speeds: Speeds): Row[] {
  const title = nameCase(subject, count);
  const ours = median(speeds.ours);
  const batched = median(speeds.batched);
  const node = median(speeds.node);
  const many = count >= 32;
  const peers = { "llama-batched-bench": batched, "node-llama-cpp": node };
  const target = `at least 0.95 of llama-batched-bench${many ? ", 1.5 x node-llama-cpp" : ""}`;
  const met = ours >= 0.95 * batched && (!many || ours >= 1.5 * node);
  const rows: Row[] = [{ case: title, metric: "tokens per second", ours, peers, target, met }];
  if (count === 1)
    rows.push({
      case: title,
      metric: "tokens per second with `deterministic`",
      ours: median(speeds.repeatable),
      peers,
      target: null,
      met: null,
    });
  const outside = 100 * median(speeds.outside);
  rows.push({
    case: title,
    metric: "% of the time outside llama_decode",
    ours: outside,
    peers: {},
    target: subject.half ? "at most 5" : null,
    met: subject.half ? outside <= 5 : null,
  });
  return rows;
}

/** Both evaluate the same, in the same order, on the same libraries: greedy tokens of one sequence must be equal. */
async function compareGreedy(subject: Subject, ours: CriaDecoder, node: NodeLlamaDecoder): Promise<void> {
  const [first, next] = [makeTokens(1, 1), makeTokens(1, 2)];
  await ours.prepare(first);
  await node.prepare(1, first);
  const [mine] = (await ours.run(next, 8, 0)).tokens;
  const [theirs] = await node.run(next, 8, 0);
  if (mine!.join() !== theirs!.join())
    throw new Error(`${subject.title}: greedy tokens differ: ${mine} and node-llama-cpp's ${theirs}`);
}

/** Ordinary tokens of any of the vocabularies: the smallest has 640, and the first 256 are bytes or control tokens. */
function makeTokens(count: number, kind: number): number[] {
  return Array.from({ length: count }, (_, i) => 260 + ((7919 * (i + 1) + 104_729 * kind) % 350));
}

const FLASH_ATTENTION = true;
