/** Measured quantities of jobs, blobs and sums, and the names of their rows. */
import type { Row } from "../row.js";

/** Each input with its unit, which is the metric of its row. */
export const inputMetrics = {
  sampled1: "sampled tokens per second, 1 conversation at once, prompts evaluated before",
  sampled8: "sampled tokens per second, 8 conversations at once, prompts evaluated before",
  sampled32: "sampled tokens per second, 32 conversations at once, prompts evaluated before",
  scored: "tokens per second of a score job (4 x 256 tokens)",
  trained: "tokens per second of a gradient job (2 x 256 tokens), its gradient read as F32",
  add: "nanoseconds per weight to copy, check and add a gradient",
  optimize: "nanoseconds per weight to hand over the sum and step (clipping, AdamW)",
  readWeights: "bytes per second to read the trained weights from the engine",
  writeWeights: "bytes per second to write them into one",
  hash: "bytes per second of SHA-256",
  put: "bytes per second of one client that puts a blob, server on the same machine",
  get: "bytes per second of one client that gets a blob, server on the same machine",
  clientPut: "nanoseconds of the client's CPU per byte put",
  clientGet: "nanoseconds of the client's CPU per byte got",
  serverPut: "nanoseconds of the server's CPU per byte put",
  serverGet: "nanoseconds of the server's CPU per byte got",
  jobs: "trivial jobs per second: coordinator, worker and server on one machine",
  coordinatorJob: "microseconds of the coordinator's CPU per job",
  workerJob: "microseconds of a worker's CPU per job",
  serverJob: "microseconds of the server's CPU per job",
} as const;

export type InputName = keyof typeof inputMetrics;
export type MeasuredInputs = Record<InputName, number>;

/** The trained weights of the measured model: LoRA of rank 16 on all linear layers of the 0.5B shape. */
export const MEASURED_MODEL = "qwen2.5-0.5b Q8_0, LoRA r16";

const titles: Record<string, readonly InputName[]> = {
  [`measured: engine, ${MEASURED_MODEL}`]: ["sampled1", "sampled8", "sampled32", "scored", "trained"],
  "measured: coordinator": ["add", "optimize", "readWeights", "writeWeights", "hash"],
  "measured: blobs over nats-server": ["put", "get", "clientPut", "clientGet", "serverPut", "serverGet"],
  "measured: jobs over nats-server": ["jobs", "coordinatorJob", "workerJob", "serverJob"],
};

const titleOf = (name: InputName) => Object.keys(titles).find((title) => titles[title]!.includes(name))!;

/** Rows in the order of `inputMetrics`. */
export function toRows(measured: Partial<MeasuredInputs>): Row[] {
  return listInputs()
    .filter((name) => measured[name] !== undefined)
    .map((name) => ({
      case: titleOf(name),
      metric: inputMetrics[name],
      ours: measured[name]!,
      peers: {},
      target: null,
      met: null,
    }));
}

/** @throws Error with the names of missing measurements. */
export function toInputs(rows: readonly Row[]): MeasuredInputs {
  const found = listInputs().map((name) => {
    const row = rows.find((one) => one.case === titleOf(name) && one.metric === inputMetrics[name]);
    if (!row) throw new Error(`not measured yet: ${titleOf(name)}: ${inputMetrics[name]}`);
    return [name, row.ours] as const;
  });
  return Object.fromEntries(found) as MeasuredInputs;
}

export const measuredTitles = Object.keys(titles);
const listInputs = () => Object.keys(inputMetrics) as InputName[];
