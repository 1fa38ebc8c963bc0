/** Trainings of this process, with workers of theirs, over a nats-server on the loopback interface. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ClusterBus, openNatsBus } from "@cria/cluster";
import { openTraining, type Training } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { MeasuredServer } from "../nats-server.js";
import { WorkerProcess, type WorkerSetup } from "./worker-process.js";

/** Time for workers until they take jobs: they load a model and compute the class of its bits. */
const PATIENCE_MS = 120_000;

/** Writes the folder of an environment: `config.yaml` and further files, by their names. */
export async function writeEnvironment(config: object, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "cria-one-machine-"));
  // JSON is YAML.
  const all = { ...files, "config.yaml": JSON.stringify(config) };
  await Promise.all(Object.entries(all).map(([name, text]) => writeFile(join(folder, name), text)));
  return folder;
}

/**
 * The training of `folder`'s config.
 * @param changes of it: key.path=value.
 * @param bus none: this process does all of it.
 */
export function openTrainingOf(folder: string, changes: readonly string[], bus?: ClusterBus): Promise<Training> {
  const { values } = loadConfig(trainConfigSchema, join(folder, "config.yaml"), changes);
  return openTraining(values, folder, { bus });
}

/** A nats-server, the coordinator's bus on it, and workers that come one after another. */
export class Crew {
  readonly workers: WorkerProcess[] = [];

  private constructor(
    readonly server: MeasuredServer,
    readonly bus: ClusterBus,
    private readonly release: () => Promise<void>,
  ) {}

  static async open(): Promise<Crew> {
    const server = await MeasuredServer.start();
    try {
      const bus = await openNatsBus({ servers: server.url, role: "coordinator" });
      const leadership = await bus.lead("benchmark");
      return new Crew(server, bus, () => leadership.release());
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  add(setup: WorkerSetup): void {
    this.workers.push(new WorkerProcess(this.server.url, "cria", setup));
  }

  /** Until all workers hold conversations. @throws Error when one ends, or after two minutes. */
  async ready({ coordination }: Training): Promise<void> {
    const until = performance.now() + PATIENCE_MS;
    const count = () =>
      coordination!.view().workers.filter(({ state, slots }) => state === "ready" && slots.rollout > 0).length;
    while (count() < this.workers.length) {
      this.cpuSeconds();
      if (performance.now() > until) throw new Error(`${count()} of ${this.workers.length} workers take part`);
      await delay(50);
    }
  }

  /** Seconds of CPU that each has used. */
  cpuSeconds(): { coordinator: number; server: number; workers: number } {
    const { user, system } = process.cpuUsage();
    return {
      coordinator: (user + system) / 1e6,
      server: this.server.cpuSeconds(),
      workers: this.workers.reduce((sum, worker) => sum + worker.cpuSeconds(), 0),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.close()));
    await this.release();
    await this.bus.close();
    await this.server.close();
  }
}

export const removeFolder = (folder: string) => rm(folder, { recursive: true, force: true });
