/**
 * One long conversation at 0.5B: memory and time of decoding behind it, of scoring it and of training on it, and the
 * mismatch that other types of keys and values bring. Each is a process of its own, whose peak of memory is measured.
 * All weights are in Q8_0; attention over the whole prefix is in every number.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { getModelFile } from "../models/index.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import type { LengthAnswer, LengthRequest } from "./child.js";

const LENGTHS = [8192, 16_384, 32_768];
const KV_TYPES = ["f32", "f16", "q8_0"] as const;
const SAMPLED = 32;
/** Bytes beyond the weights for one step on a conversation of this many tokens. */
const limit = { length: 16_384, memory: 6 * 2 ** 30 };
/** The length at which sampled tokens are scored too, which takes as long as the prompt. */
const COMPARED = LENGTHS[0]!;

const parts = [
  ...KV_TYPES.map((kvType) => ({ do: "decode" as const, kvType, title: `decode, KV in ${kvType.toUpperCase()}` })),
  { do: "score" as const, kvType: "f32" as const, title: "score" },
  { do: "train" as const, kvType: "f32" as const, title: "LoRA step" },
];

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  const path = await getModelFile("qwen2.5-0.5b", "Q8_0");
  for (const { title: part, ...request } of parts) {
    const memory = new Map<number, number>();
    for (const length of LENGTHS) {
      const title = `qwen2.5-0.5b Q8_0, ${part}, ${length / 1024}k tokens`;
      if (!includes(title)) continue;
      const compares = length === COMPARED && request.do === "decode";
      const answer = ask({ ...request, path, length, threads: THREADS, sampled: SAMPLED, compares });
      log(`${title}: ${JSON.stringify(answer)}`);
      memory.set(length, answer.memory);
      rows.push(...makeRows(title, request.do, length, answer));
    }
    const [short, middle, long] = LENGTHS.map((length) => memory.get(length));
    if (short === undefined || middle === undefined || long === undefined) continue;
    rows.push({
      case: `qwen2.5-0.5b Q8_0, ${part}`,
      metric: "memory added from 16k to 32k tokens over that from 8k to 16k",
      ours: (long - middle) / Math.max(1, middle - short),
      peers: {},
      target: "at most 2.2: linear growth gives 2, quadratic 4",
      met: long - middle <= 2.2 * Math.max(1, middle - short),
    });
  }
  return { rows };
}

function ask(request: LengthRequest): LengthAnswer {
  const child = join(import.meta.dirname, "child.ts");
  const output = execFileSync(process.execPath, [...process.execArgv, child, JSON.stringify(request)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(output.trim().split("\n").at(-1)!) as LengthAnswer;
}

function makeRows(title: string, does: LengthRequest["do"], length: number, answer: LengthAnswer): Row[] {
  const inform = (metric: string, ours: number): Row => ({
    ...{ case: title, metric, ours },
    peers: {},
    target: null,
    met: null,
  });
  const isLimited = does === "train" && length === limit.length;
  const rows: Row[] = [
    {
      ...inform("peak resident memory of the process less the weights, MiB", answer.memory / 2 ** 20),
      ...(isLimited && { target: "below 6 GiB", met: answer.memory < limit.memory }),
    },
    inform(`tokens per second of the ${does === "decode" ? "prompt" : "whole"}`, length / answer.seconds),
  ];
  if (answer.decodeSeconds !== undefined)
    rows.push(inform("sampled tokens per second behind them", SAMPLED / answer.decodeSeconds));
  if (answer.difference !== undefined)
    rows.push(inform("greatest difference between the sampler's logprobs and scoring's, nats", answer.difference));
  return rows;
}
