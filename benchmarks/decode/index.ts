/**
 * Decoding: tokens per second of 1 to 64 sequences together, each with its own sampled continuation of one prompt.
 * Peers: node-llama-cpp's automatic batching, and llama.cpp's own llama-batched-bench, which samples nothing and is the
 * limit. All run on the same libraries with an F16 KV cache, each in its better setting (`settings.ts`). Ours and
 * node-llama-cpp draw at temperature 1 from the whole vocabulary; ours computes the logprobs too, and runs with
 * `deterministic` on and off.
 */
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { getModelFile, type ModelName, type ModelType } from "../models/index.js";
import type { Measured, Row } from "../row.js";
import { type Best, listSettings, measureBest, THREADS } from "../settings.js";
import {
  compareGreedy,
  nameOurs,
  type OurContender,
  openBatched,
  openNode,
  openOurs,
  type Task,
} from "./contenders.js";

const SEQUENCES = [1, 8, 32, 64];

interface Subject {
  title: string;
  getPath: () => Promise<string>;
  /** Tokens that each sequence samples in a run, when one, up to 8, and more are decoded together. */
  steps: { one: number; few: number; many: number };
  /** Threads may cost it more than they bring. */
  small: boolean;
  /** Most of the time outside llama_decode, in %; null: no target. */
  mostOutside: number | null;
}

function listSubjects(log: (text: string) => void): Subject[] {
  const shaped = (name: ModelName, type: ModelType, steps: Subject["steps"]): Subject => ({
    title: `${name} ${type}`,
    getPath: () => getModelFile(name, type, log),
    steps,
    small: false,
    mostOutside: name === "qwen2.5-0.5b" ? 5 : null,
  });
  return [
    {
      title: "cria-tiny F32",
      getPath: async () => embeddedPolicyPath,
      steps: { one: 192, few: 64, many: 64 },
      small: true,
      mostOutside: null,
    },
    ...(["F16", "Q8_0", "Q4_K_M"] as const).map((type) => shaped("smollm2-135m", type, { one: 48, few: 16, many: 6 })),
    ...(["F16", "Q8_0", "Q4_K_M"] as const).map((type) => shaped("qwen2.5-0.5b", type, { one: 24, few: 8, many: 3 })),
  ];
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const subject of listSubjects(log)) {
    const counts = SEQUENCES.filter((count) => includes(nameCase(subject, count)));
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
    getSteps: (count, isTrial) => {
      const steps = count === 1 ? one : count <= 8 ? few : many;
      return isTrial ? Math.min(steps, Math.max(3, Math.ceil(steps / 4))) : steps;
    },
  };
  await compareGreedy(task, { flashAttention: true, threads: THREADS });
  const ours: OurContender[] = [];
  const peers = [];
  for (const setting of listSettings(subject.small)) {
    ours.push(await openOurs(task, setting, true), await openOurs(task, setting, false));
    peers.push(openBatched(task, setting, log), await openNode(task, setting));
  }
  const bests = await measureBest([...ours, ...peers], counts, {
    trials: subject.small ? 2 : 1,
    log: (text) => log(`${subject.title}: ${text}`),
  });
  return counts.flatMap((count) => {
    const get = (side: string) => bests.get(side)!.get(count)!;
    const free = ours.find(({ side, setting }) => side === nameOurs(false) && setting === get(side).used)!;
    const rows = makeRows(subject, count, get, 100 * median(free.outside.get(count)!));
    for (const { metric, ours: value, peers: others } of rows)
      log(`${nameCase(subject, count)}: ${metric}: ${value} ${JSON.stringify(others)}`);
    return rows;
  });
}

/** `outside`: % of the time outside llama_decode without `deterministic`. */
function makeRows(subject: Subject, count: number, get: (side: string) => Best, outside: number): Row[] {
  const title = nameCase(subject, count);
  const many = count >= 32;
  const peerNames = ["llama-batched-bench", "node-llama-cpp"];
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
  const free = inform(false, peerNames);
  const [limit, node] = peerNames.map((name) => free.peers[name]!);
  return [
    {
      ...free,
      target: `at least 0.95 of llama-batched-bench${many ? ", 1.5 x node-llama-cpp" : ""}`,
      met: free.ours >= 0.95 * limit! && (!many || free.ours >= 1.5 * node!),
    },
    inform(true, [...peerNames, nameOurs(false)]),
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
