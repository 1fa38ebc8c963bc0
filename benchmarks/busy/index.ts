/**
 * Steps of the demo (examples/calculator) beside processes that never wait, one and one for each core. Every third run
 * of six steps is alone. The peer is ourselves alone: a core that is shared costs its share, and no more.
 */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { openTraining, runTrainingStep, type Training } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import type { BenchmarkOptions } from "../benchmark.js";
import { compareRuns } from "../measure.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";

const configFile = join(import.meta.dirname, "..", "..", "examples", "calculator", "config.yaml");
const STEPS = 6;
const TITLE = "GRPO steps of the demo beside busy processes";
const LEAST = 0.4;

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  if (!includes(TITLE)) return { rows: [] };
  const { values } = loadConfig(trainConfigSchema, configFile, [`trainer.threads=${THREADS}`]);
  const training = await openTraining(values, dirname(configFile));
  try {
    let step = 0;
    const measure = (busy: number) => () =>
      besideProcesses(busy, async () => {
        const began = performance.now();
        let tokens = 0;
        for (let k = 0; k < STEPS; k++) tokens += await takeStep(training, ++step);
        const perSecond = (1000 * tokens) / (performance.now() - began);
        log(`${busy} busy: ${Math.round(perSecond)} tokens per second`);
        return perSecond;
      });
    const { alone, one, all } = await compareRuns({ alone: measure(0), one: measure(1), all: measure(THREADS) });
    const describe = (name: string, ours: number, least: number | null): Row => ({
      case: TITLE,
      metric: `tokens of trajectories per second, ${name}`,
      ours,
      peers: { alone: alone.median },
      target: least === null ? null : `at least ${least} times alone`,
      met: least === null ? null : ours >= least * alone.median,
    });
    return { rows: [describe("one", one.median, LEAST), describe(`${THREADS}`, all.median, null)] };
  } finally {
    await training.dispose();
  }
}

async function takeStep(training: Training, step: number): Promise<number> {
  const { config, trainRows } = training;
  const size = config.data.train_batch_size;
  const first = ((step - 1) * size) % (trainRows.length - size);
  const { metrics } = await runTrainingStep(training, { rows: trainRows.slice(first, first + size), step, epoch: 0 });
  return metrics["perf/total_num_tokens"]!;
}

async function besideProcesses<T>(count: number, work: () => Promise<T>): Promise<T> {
  const busy = Array.from({ length: count }, () => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }));
  try {
    return await work();
  } finally {
    for (const process of busy) process.kill("SIGKILL");
  }
}
