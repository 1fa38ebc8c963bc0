/**
 * A gate of a few minutes: decoding beside llama-batched-bench, and a training step and a step of the demo beside
 * PyTorch where there is one. A row is missed if its ratio to the peer of the same run fell by more than a tenth below
 * the kept one of this kind of machine (`results/<kind>/quick.json`, written by --save).
 */
import type { BenchmarkOptions } from "../benchmark.js";
import {
  compareGreedy,
  nameOurs,
  nameSubject,
  openBatched,
  openOurs,
  SHORT_PROMPT,
  type Task,
} from "../decode/contenders.js";
import { readMachine } from "../machine.js";
import { getModelFile } from "../models/index.js";
import { readResults } from "../pages/results.js";
import type { Measured, Row } from "../row.js";
import { measureBest, THREADS } from "../settings.js";
import { run as runStep } from "../step/index.js";
import { run as runTrain } from "../train/index.js";
import { judgeRows } from "./judge.js";

/** Behind a short prompt, and behind one that attention takes much time for. */
const SUBJECTS = [
  { type: "F16", promptLength: SHORT_PROMPT, sequences: [1, 32] },
  { type: "Q8_0", promptLength: SHORT_PROMPT, sequences: [1, 32] },
  { type: "Q4_K_M", promptLength: SHORT_PROMPT, sequences: [1, 32] },
  { type: "Q8_0", promptLength: 1024, sequences: [8] },
] as const;
const TRAINED = "smollm2-135m Q8_0, LoRA r16, 2 x 256";
const PEER = "llama-batched-bench";

export async function run(options: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const subject of SUBJECTS) rows.push(...(await measureDecode(subject, options)));
  const trained = await runTrain({ ...options, includes: (title) => title === TRAINED && options.includes(title) });
  const stepped = await runStep(options);
  rows.push(...trained.rows, ...stepped.rows.filter(({ metric }) => metric.startsWith("steps per second")));
  const kept = readResults().get(readMachine().kind) ?? [];
  return {
    rows: judgeRows(rows, kept.find(({ name }) => name === "quick")?.rows ?? []),
    peerChecks: [...(trained.peerChecks ?? []), ...(stepped.peerChecks ?? [])].slice(0, 1),
  };
}

/** Each side in the setting that was the better one for it: ours with its own attention, the peer's with flash attention. */
async function measureDecode(
  { type, promptLength, sequences }: (typeof SUBJECTS)[number],
  { includes, log }: BenchmarkOptions,
): Promise<Row[]> {
  const title = nameSubject("smollm2-135m", type, promptLength);
  const nameCase = (count: number) => `${title}, ${count} ${count === 1 ? "sequence" : "sequences"}`;
  const counts = sequences.filter((count) => includes(nameCase(count)));
  if (counts.length === 0) return [];
  const path = await getModelFile("smollm2-135m", type, log);
  const getSteps = (count: number) => (count === 1 ? 32 : 6);
  const task: Task = { title, path, sequences: Math.max(...counts), promptLength, getSteps };
  await compareGreedy(task, { flashAttention: true, threads: THREADS });
  const sides = [
    await openOurs(task, { flashAttention: false, threads: THREADS }, true),
    openBatched(task, { flashAttention: true, threads: THREADS }, log),
  ];
  const bests = await measureBest(sides, counts, { rounds: 7, log: () => {} });
  return counts.map((count): Row => {
    const ours = bests.get(nameOurs(true))!.get(count)!.median;
    const theirs = bests.get(PEER)!.get(count)!.median;
    log(`${nameCase(count)}: ${ours.toFixed(0)} tokens/s, ${PEER} ${theirs.toFixed(0)}`);
    return {
      case: nameCase(count),
      metric: "tokens per second, deterministic: true",
      ours,
      peers: { [PEER]: theirs },
      target: null,
      met: null,
    };
  });
}
