/**
 * Synchronous training on many machines, as far as one machine can tell: job times of the 0.5B shape; costs of the bus,
 * its blobs and the coordinator's sums over a real nats-server; the scaling of sleeping tools with workers; and the
 * cost of one worker compared with a training without a bus. `docs/cluster-measured.md` shows the results,
 * `docs/cluster-sizes.md` the estimates that `model/` makes from them.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import type { Row } from "../row.js";
import { measuredTitles, toRows } from "./inputs.js";
import { measureBus } from "./measure-bus.js";
import { measureEngine } from "./measure-engine.js";
import { ONE_WORKER_CASE, WAITING_CASE } from "./one-machine/cases.js";
import { measureOneWorker } from "./one-machine/one-worker.js";
import { measureWaitingTools } from "./one-machine/waiting-tools.js";

export async function run(options: BenchmarkOptions): Promise<{ rows: Row[] }> {
  return { rows: [...(await measure(options)), ...(await train(options))] };
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
