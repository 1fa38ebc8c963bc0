/**
 * Decoding: tokens per second of 1 to 64 sequences together, each with its own sampled continuation of one prompt, of
 * sixteen tokens or of some thousand.
 * Peers: node-llama-cpp's automatic batching, and llama.cpp's own llama-batched-bench, which samples nothing and is the
 * limit. All run on the same libraries with an F16 KV cache, each in its better setting (`settings.ts`). Ours and
 * node-llama-cpp draw at temperature 1 from the whole vocabulary; ours computes the logprobs too. Three types are measured
 * beside all sides, ours with `deterministic` on and off; the others with it on, beside llama-batched-bench.
 */
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { getModelFile, type ModelType } from "../models/index.js";
import type { Measured, Row } from "../row.js";
import { type Best, listSettings, measureBest, THREADS } from "../settings.js";
import {
  compareGreedy,
  nameOurs,
  nameSubject,
  type OurContender,
  openBatched,
  openNode,
  openOurs,
  SHORT_PROMPT,
  type Task,
} from "./contenders.js";

const SEQUENCES = [1, 8, 32, 64];
/** Longer prompts, with weights in Q8_0: attention takes much of a step. */
const LONG_PROMPTS: readonly [keyof typeof MODELS, promptLength: number, counts: readonly number[]][] = [
  ["smollm2-135m", 1024, [1, 8, 32]],
  ["smollm2-135m", 4096, [1, 8]],
  ["qwen2.5-0.5b", 1024, [1, 8, 32]],
];
const LIMIT = "llama-batched-bench";
/** The default, `deterministic: true`, is to reach this share of the limit. */
const LEAST = 0.97;

interface Subject {
  title: string;
  getPath: () => Promise<string>;
  /** Tokens that all sequences begin with. */
  promptLength: number;
  /** Numbers of sequences. */
  counts: readonly number[];
  /** Tokens that each sequence samples in a run, when one, up to 8, and more are decoded together. */
  steps: { one: number; few: number; many: number };
  /** Threads may cost it more than they bring. */
  small: boolean;
  /** Beside all sides, or with `deterministic: true` beside llama-batched-bench alone. */
  sides: "all" | "limit";
  /** Most of the time outside llama_decode, in %; null: no target. */
  mostOutside: number | null;
}

const MODELS: Record<"smollm2-135m" | "qwen2.5-0.5b", Subject["steps"]> = {
  "smollm2-135m": { one: 48, few: 16, many: 6 },
  "qwen2.5-0.5b": { one: 24, few: 8, many: 3 },
};
const TYPES: Record<Subject["sides"], readonly ModelType[]> = {
  all: ["F16", "Q8_0", "Q4_K_M"],
  limit: ["BF16", "Q6_K", "Q5_K_M", "Q4_1", "Q4_0"],
};

function listSubjects(log: (text: string) => void): Subject[] {
  const shaped = (
    name: keyof typeof MODELS,
    type: ModelType,
    sides: Subject["sides"],
    promptLength = SHORT_PROMPT,
    counts: readonly number[] = SEQUENCES,
  ): Subject => ({
    title: nameSubject(name, type, promptLength),
    getPath: () => getModelFile(name, type, log),
    promptLength,
    counts,
    steps: MODELS[name],
    small: false,
    sides,
    mostOutside: name === "qwen2.5-0.5b" ? 5 : null,
  });
  return [
    {
      title: "cria-tiny F32",
      getPath: async () => embeddedPolicyPath,
      promptLength: SHORT_PROMPT,
      counts: SEQUENCES,
      steps: { one: 192, few: 64, many: 64 },
      small: true,
      sides: "all",
      mostOutside: null,
    },
    ...(["smollm2-135m", "qwen2.5-0.5b"] as const).flatMap((name) =>
      (["all", "limit"] as const).flatMap((sides) => TYPES[sides].map((type) => shaped(name, type, sides))),
    ),
    ...LONG_PROMPTS.map(([name, length, counts]) => shaped(name, "Q8_0", "limit", length, counts)),
  ];
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const subject of listSubjects(log)) {
    const counts = subject.counts.filter((count) => includes(nameCase(subject, count)));
    if (counts.length > 0) rows.push(...(await measureSubject(subject, counts, log)));
  }
  return { rows };
}

const nameCase = (subject: Subject, count: number) =>
  `${subject.title}, ${count} ${count === 1 ? "sequence" : "sequences"}`;

async function measureSubject(subject: Subject, counts: number[], log: (text: string) => void): Promise<Row[]> {
  const { one, few, many } = subject.steps;
  const task: Task = {
    title: subject.title,
    path: await subject.getPath(),
    sequences: Math.max(...counts),
    promptLength: subject.promptLength,
    getSteps: (count, isTrial) => {
      const steps = count === 1 ? one : count <= 8 ? few : many;
      return isTrial ? Math.min(steps, Math.max(3, Math.ceil(steps / 4))) : steps;
    },
  };
  await compareGreedy(task, { flashAttention: true, threads: THREADS });
  const isAlone = subject.sides === "limit";
  const ours: OurContender[] = [];
  const peers = [];
  for (const setting of listSettings(subject.small)) {
    for (const deterministic of isAlone ? [true] : [true, false])
      ours.push(await openOurs(task, setting, deterministic));
    peers.push(openBatched(task, setting, log));
    if (!isAlone) peers.push(await openNode(task, setting));
  }
  const bests = await measureBest([...ours, ...peers], counts, {
    trials: subject.small ? 2 : 1,
    log: (text) => log(`${subject.title}: ${text}`),
  });
  return counts.flatMap((count) => {
    const get = (side: string) => bests.get(side)!.get(count)!;
    const used = ours.find(({ side, setting }) => side === nameOurs(true) && setting === get(side).used)!;
    const rows = makeRows(subject, count, get, 100 * median(used.outside.get(count)!));
    for (const { metric, ours: value, peers: others } of rows)
      log(`${nameCase(subject, count)}: ${metric}: ${value} ${JSON.stringify(others)}`);
    return rows;
  });
}

/** `outside`: % of the time outside llama_decode, with `deterministic`. */
function makeRows(subject: Subject, count: number, get: (side: string) => Best, outside: number): Row[] {
  const title = nameCase(subject, count);
  const inform = (deterministic: boolean, names: readonly string[]): Row => ({
    case: title,
    metric: `tokens per second, deterministic: ${deterministic}`,
    ours: get(nameOurs(deterministic)).median,
    peers: Object.fromEntries(names.map((name) => [name, get(name).median])),
    settings: Object.fromEntries(
      [["ours", nameOurs(deterministic)], ...names.map((name) => [name, name])].map(([key, side]) => {
        const { used, tried } = get(side!);
        return [key, { used, tried }];
      }),
    ),
    target: null,
    met: null,
  });
  const isAlone = subject.sides === "limit";
  const peerNames = [LIMIT, ...(isAlone ? [] : ["node-llama-cpp"])];
  const promised = inform(true, [...peerNames, ...(isAlone ? [] : [nameOurs(false)])]);
  return [
    {
      ...promised,
      target: `at least ${LEAST} of llama-batched-bench`,
      met: promised.ours >= LEAST * promised.peers[LIMIT]!,
    },
    ...(isAlone ? [] : [inform(false, peerNames)]),
    {
      case: title,
      metric: "% of the time outside llama_decode",
      ours: outside,
      peers: {},
      target: subject.mostOutside === null ? null : `at most ${subject.mostOutside}`,
      met: subject.mostOutside === null ? null : outside <= subject.mostOutside,
    },
  ];
}
