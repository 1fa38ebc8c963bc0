import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { loadModel } from "../../load-model.js";
import type { SchedulerStats } from "../../native-types.js";
import { provokeRefusals, restoreState, saveState, trainCritic, trainSome } from "./change-weights.js";
import { checkTurns, type SoakChecks } from "./check-turns.js";
import { type MemorySample, type MemoryTrend, measureMemoryTrend } from "./memory-trend.js";
import { runFamily } from "./run-conversations.js";
import { SeededRandom } from "./seeded-random.js";
import { type SoakCounts, SoakState } from "./soak-state.js";

export interface SoakOptions {
  /** Path of a GGUF with F32 weights. */
  path: string;
  /** Duration of the load; the last check comes after. */
  seconds: number;
  /** Time between two changes of the weights. Default 8. */
  epochSeconds?: number;
  /** Seed of every choice; timing decides which requests coincide. Default 1. */
  seed?: number;
  /** Families of conversations at the same time. Default 8, for 4 KV slots. */
  families?: number;
  /** Threads of the engine under load; undisturbed runs use one. Default 1. */
  threads?: number;
  /** Turns that each check generates again by themselves. Default 150. */
  replays?: number;
  /**
   * Most bytes that RSS may grow by after the warm-up. Default 8 MiB; Infinity for runs that consist of warm-up only.
   */
  maxGrowth?: number;
  onEpoch?: (
    epoch: number,
    report: Pick<SoakReport, "counts" | "checks" | "failures"> & { memory: MemorySample },
  ) => void;
}

export interface SoakReport {
  seed: number;
  seconds: number;
  epochs: number;
  counts: SoakCounts;
  checks: SoakChecks;
  scheduler: SchedulerStats;
  memory: { samples: MemorySample[]; trend: MemoryTrend | null };
  /** Descriptions of failures; empty when there were none. */
  failures: string[];
}

/**
 * Mixed load on one model for a while: conversations that start, fork, are aborted, evicted and disposed of, scoring,
 * training, flushes, saved and restored states, a critic, and calls that must be refused. Compares logprobs with
 * undisturbed runs, and checks that nothing is left at the end. Call it in a separate process to judge RSS;
 * `--expose-gc` makes samples more stable.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const {
    seconds,
    epochSeconds = 8,
    seed = 1,
    families = 8,
    threads = 1,
    replays = 150,
    maxGrowth = 8 * 2 ** 20,
  } = options;
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const folder = mkdtempSync(join(tmpdir(), "cria-soak-"));
  // Four slots and memory for a few saved states, so that both ways of eviction happen all the time. A context of more
  // than 256 tokens, where llama.cpp's attention uses another block of cells.
  const model = await loadModel({
    path: options.path,
    threads,
    contextSize: 512,
    maxSequences: 4,
    swapBytes: 1_000_000,
    lora: { rank: 4, alpha: 8 },
  });
  const state = new SoakState(model, options.path, folder, new SeededRandom(seed));
  const checks: SoakChecks = {
    scoredTokens: 0,
    worstDifference: 0,
    replayedRequests: 0,
    replayedTokens: 0,
  };
  const samples: MemorySample[] = [];
  const onRejection = (reason: unknown) => state.fail(`unhandled rejection: ${(reason as Error)?.stack ?? reason}`);
  process.on("unhandledRejection", onRejection);
  let epochs = 0;
  try {
    const initial = await saveState(model);
    const actors = Array.from({ length: families }, (_, i) =>
      state.repeat("conversations", (round) => runFamily(state, state.random.derive(1000 * round + i))),
    );
    actors.push(state.repeat("disturbance", (round) => disturb(state, state.random.derive(-1 - round))));
    actors.push(
      state.repeat("epochs", async (round) => {
        const random = state.random.derive(1e6 + round);
        const ends = Math.min(elapsed() + epochSeconds, seconds);
        while (elapsed() < ends && !state.stopping) await sleep(20);
        await checkTurns(state, checks, replays);
        if (round % 4 === 1) await trainCritic(state, random);
        await state.changeWeights(async () => {
          await trainSome(state, random);
          // Restores the initial state now and then: with random advantages the policy would drift away.
          if (round % 5 === 4) await restoreState(state, initial);
        });
        globalThis.gc?.();
        const { rss, heapUsed: heap, external } = process.memoryUsage();
        samples.push({ seconds: elapsed(), rss, heap, external });
        epochs++;
        options.onEpoch?.(round, { counts: state.counts, checks, failures: state.failures, memory: samples.at(-1)! });
        if (elapsed() >= seconds) state.stopping = true;
      }),
    );
    await Promise.all(actors);
    const scheduler = model.schedulerStats();
    for (const key of ["sequences", "residentSequences", "requests", "swappedBytes"] as const)
      if (scheduler[key] !== 0) state.fail(`left over at the end: ${scheduler[key]} ${key}`);
    if (checks.scoredTokens === 0 || checks.replayedRequests === 0) state.fail("nothing was checked");
    const trend = measureMemoryTrend(samples);
    if (trend && trend.growth > maxGrowth) state.fail(`RSS grew by ${trend.growth} bytes after the warm-up`);
    const { counts, failures } = state;
    return { seed, seconds: elapsed(), epochs, counts, checks, scheduler, memory: { samples, trend }, failures };
  } finally {
    state.stopping = true;
    await model.dispose();
    process.off("unhandledRejection", onRejection);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Between conversations: scoring, flushes, reading the state, refused calls. */
async function disturb(state: SoakState, random: SeededRandom): Promise<void> {
  await sleep(random.between(5, 200));
  const kind = random.next();
  if (kind < 0.5) {
    const { vocabSize } = state.model.info;
    const sequences = Array.from({ length: random.between(1, 6) }, () => ({
      tokenIds: Array.from({ length: random.between(2, 80) }, () => random.between(0, vocabSize - 1)),
    }));
    await state.model.score(sequences, { adapter: random.chance(0.7), entropy: random.chance(0.5) });
    state.counts.scoreCalls++;
  } else if (kind < 0.6) {
    await state.model.flushCache();
    state.counts.flushes++;
  } else if (kind < 0.65) {
    await provokeRefusals(state);
  } else {
    const { requests, sequences } = state.model.schedulerStats();
    if (requests > sequences) state.fail(`${requests} requests for ${sequences} sequences`);
  }
}
