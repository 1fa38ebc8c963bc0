/**
 * Synchronous training on many machines. What one machine can tell is measured: job times of the 0.5B shape, and what the bus,
 * its blobs and the coordinator's sums cost over a real nats-server; how tools that sleep scale with workers, and what one worker
 * costs beside a training without a bus. Then a step is simulated with 1 to 1,000 workers, from the first of these
 * numbers and from assumptions about wires, workloads and faster workers, which `docs/cluster-sizes.md` lists.
 * `--only simulated` simulates anew from what was measured and saved before.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import { readMachine } from "../machine.js";
import { readResults } from "../pages/results.js";
import type { Row } from "../row.js";
import { type ClusterRow, makeRow } from "./cluster-row.js";
import { measuredTitles, toInputs, toRows } from "./inputs.js";
import { measureBus } from "./measure-bus.js";
import { measureEngine } from "./measure-engine.js";
import { ONE_WORKER_CASE, WAITING_CASE } from "./one-machine/cases.js";
import { measureOneWorker } from "./one-machine/one-worker.js";
import { measureWaitingTools } from "./one-machine/waiting-tools.js";
import { scenarios, simulateScenario, titleOf } from "./scenarios.js";

export async function run(options: BenchmarkOptions): Promise<{ rows: ClusterRow[] }> {
  const measured = await measure(options);
  const trained = await train(options);
  const chosen = scenarios.filter((scenario) => options.includes(titleOf(scenario)));
  if (chosen.length === 0) return { rows: [...measured, ...trained] };
  const saved = readResults()
    .get(readMachine().kind)
    ?.find(({ name }) => name === "cluster");
  const inputs = toInputs([...measured, ...(saved?.rows ?? [])]);
  const simulated = chosen.map((scenario) => {
    const row = makeRow(scenario, simulateScenario(scenario, inputs));
    options.log(`${row.case}: ${row.ours}`);
    return row;
  });
  return { rows: [...measured, ...trained, ...simulated] };
}

async function measure({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const [engine, coordinator, ...bus] = measuredTitles;
  const ofEngine = [engine!, coordinator!].some(includes) ? await measureEngine(log) : {};
  const ofBus = bus.some(includes) ? await measureBus(log) : {};
  return toRows({ ...ofEngine, ...ofBus }).filter((row) => includes(row.case));
}

/** Trainings with real workers, all of them on this machine. */
async function train({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const waiting = includes(WAITING_CASE) ? await measureWaitingTools(log) : [];
  const oneWorker = includes(ONE_WORKER_CASE) ? await measureOneWorker(log) : [];
  return [...waiting, ...oneWorker];
}
