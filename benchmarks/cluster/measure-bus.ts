/**
 * Costs of a job and a blob: the coordinator in this process, a worker and nats-server in theirs. CPU times are those
 * of each process, so that they hold for separate machines; rates are those of three processes on one machine.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type JobBus, openNatsBus } from "@cria/cluster";
import { median } from "../measure.js";
import type { MeasuredInputs } from "./inputs.js";
import { MeasuredServer } from "./nats-server.js";
import { takeQuietest } from "./quietest.js";
import { trivialJob } from "./trivial-job.js";

const JOBS = 1000;
const SLOTS = 16;
const BLOB_BYTES = 35_000_000;
const ROUNDS = 5;

export async function measureBus(log: (text: string) => void): Promise<Partial<MeasuredInputs>> {
  const server = await MeasuredServer.start();
  try {
    const prefix = "measured";
    const bounds = { blobBytes: 2 ** 30, oneBlobBytes: 2 ** 28, recordBytes: 2 ** 28, jobBytes: 2 ** 30 };
    const bus = await openNatsBus({ servers: server.url, role: "coordinator", prefix, bounds });
    try {
      const blobs = await measureBlobs(bus, server, log);
      return { ...blobs, ...(await measureJobs(bus, server, prefix, log)) };
    } finally {
      await bus.close();
    }
  } finally {
    await server.close();
  }
}

/** Measures one worker with 16 slots. */
async function measureJobs(
  bus: JobBus,
  server: MeasuredServer,
  prefix: string,
  log: (text: string) => void,
): Promise<Partial<MeasuredInputs>> {
  const program = join(import.meta.dirname, "trivial-worker.ts");
  const child = spawn(process.execPath, [...process.execArgv, program, server.url, prefix, String(SLOTS)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    const first = await lines.next();
    if (first.value !== "ready") throw new Error("the worker did not start");
    // As long as the payload of a rollout.
    const text = "x".repeat(1000);
    let index = 0;
    const run = (count: number) =>
      Promise.all(Array.from({ length: count }, () => bus.submit(trivialJob, { index: index++, text })));
    // The worker's CPU time cannot be told from others' here, so every round counts.
    const used: Used[] = [];
    for (let round = 0; round < ROUNDS; round++) used.push(await measureUse(server, () => run(JOBS)));
    const middle = (pick: (one: Used) => number) => median(used.map(pick));
    log(`jobs per second: ${used.map(({ seconds }) => Math.round(JOBS / seconds))}`);
    child.stdin.end();
    const { value } = await lines.next();
    return {
      jobs: middle(({ seconds }) => JOBS / seconds),
      coordinatorJob: middle(({ cpu }) => (cpu / JOBS) * 1e6),
      workerJob: (Number(value) / (JOBS * ROUNDS)) * 1e6,
      serverJob: middle(({ serverCpu }) => (serverCpu / JOBS) * 1e6),
    };
  } finally {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  }
}

async function measureBlobs(
  bus: JobBus,
  server: MeasuredServer,
  log: (text: string) => void,
): Promise<Partial<MeasuredInputs>> {
  const takeRound = async () => {
    const bytes = randomBytes(BLOB_BYTES);
    let sha = "";
    const put = await measureUse(server, async () => {
      sha = await bus.blobs.put(bytes);
    });
    const get = await measureUse(server, () => bus.blobs.get(sha));
    await bus.blobs.delete(sha);
    return { put, get };
  };
  const rounds = await takeQuietest(takeRound, { warmUp: 1, own: () => server.cpuSeconds(), log });
  const puts = rounds.map(({ put }) => put);
  const gets = rounds.map(({ get }) => get);
  const rate = (used: Used[]) => median(used.map(({ seconds }) => BLOB_BYTES / seconds));
  const perByte = (used: Used[], of: "cpu" | "serverCpu") => median(used.map((one) => (one[of] / BLOB_BYTES) * 1e9));
  log(`blobs: put ${(rate(puts) / 1e6).toFixed(0)} MB/s, get ${(rate(gets) / 1e6).toFixed(0)} MB/s`);
  return {
    put: rate(puts),
    get: rate(gets),
    clientPut: perByte(puts, "cpu"),
    clientGet: perByte(gets, "cpu"),
    serverPut: perByte(puts, "serverCpu"),
    serverGet: perByte(gets, "serverCpu"),
  };
}

interface Used {
  /** Seconds by the clock. */
  seconds: number;
  /** CPU seconds of this process. */
  cpu: number;
  serverCpu: number;
}

async function measureUse(server: MeasuredServer, run: () => Promise<unknown>): Promise<Used> {
  const before = process.cpuUsage();
  const serverBefore = server.cpuSeconds();
  const started = performance.now();
  await run();
  const seconds = (performance.now() - started) / 1e3;
  const { user, system } = process.cpuUsage(before);
  return { seconds, cpu: (user + system) / 1e6, serverCpu: server.cpuSeconds() - serverBefore };
}
