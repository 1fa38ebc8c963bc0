import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsServer } from "./nats-process.js";

/** Milliseconds without a further step, or an end, after which a run has failed. */
const PATIENCE_MS = 100_000;

/** Faults during a training. */
export interface Mishaps {
  /** Number of workers to kill, one after another over the steps; each is replaced. */
  workerKills?: number;
  /** Stops a worker after the first step, as a debugger does, and resumes it after the third. */
  workerFreeze?: boolean;
  /** Kills nats-server in the middle of the run, and starts it again. */
  natsRestart?: boolean;
  /** Kills the coordinator in the middle of the run; a standby waits. */
  coordinatorKill?: boolean;
}

export interface ClusterRunOptions extends Mishaps {
  /** Command words that start `cria`. */
  cria: readonly string[];
  /** The config, and overrides. */
  config: string;
  overrides: readonly string[];
  /** Parent of run folders, and this one's name. */
  folder: string;
  name: string;
  steps: number;
  /** 0: no bus. */
  workers: number;
  server?: NatsServer;
  /** Uniform in [0, 1). */
  random: () => number;
}

export interface ClusterRunResult {
  /** SHA-256 of the adapter. */
  sha: string;
  seconds: number;
  workerKills: number;
  workerFreezes: number;
  natsRestarts: number;
  coordinatorKills: number;
  /** Sums over the steps. */
  jobsHere: number;
  jobsElsewhere: number;
  redelivered: number;
  abandoned: number;
}

/**
 * Trains with workers and faults, each process separate.
 * @throws Error with the output of all processes, when one fails or the training gets no further.
 */
export async function runOnCluster(options: ClusterRunOptions): Promise<ClusterRunResult> {
  const { folder, name, steps, workers, server, random } = options;
  const started = performance.now();
  const run = join(folder, "cluster", name);
  const crew = new Crew(options.cria, workers > 0 ? server?.url : undefined, name);
  const done = { workerKills: 0, workerFreezes: 0, natsRestarts: 0, coordinatorKills: 0 };
  const train = (wait: number) =>
    crew.start("train", [
      options.config,
      ...options.overrides,
      `trainer.default_local_dir=${folder}`,
      "trainer.project_name=cluster",
      `trainer.experiment_name=${name}`,
      `trainer.total_training_steps=${steps}`,
      ...(workers > 0 ? [`cluster.wait_for_workers=${wait}`] : []),
    ]);
  const addWorker = () => crew.start("worker", ["--threads", "1", "--code", dirname(options.config)]);
  try {
    let coordinator = train(workers);
    for (let i = 0; i < workers; i++) addWorker();
    let standby = options.coordinatorKill ? train(0) : null;
    let frozen: Member | undefined;
    const kills = spread(options.workerKills ?? 0, steps);
    for (let step = 1; step < steps; step++) {
      await crew.during(coordinator, () => countSteps(run) >= step);
      if (countSteps(run) >= steps) break;
      if (options.natsRestart && step === Math.ceil(steps / 2)) {
        await server!.kill();
        await delay(500);
        await server!.start();
        done.natsRestarts++;
      }
      if (standby && step === Math.ceil(steps / 3)) {
        crew.kill(coordinator);
        coordinator = standby;
        standby = null;
        done.coordinatorKills++;
      }
      if (options.workerFreeze && step === 1) {
        frozen = crew.running("worker")[0];
        frozen?.child.kill("SIGSTOP");
        done.workerFreezes++;
      }
      if (step === 3) frozen?.child.kill("SIGCONT");
      for (let k = 0; k < (kills[step] ?? 0); k++) {
        // In the middle of its jobs.
        await delay(300 * random());
        const crewmen = crew.running("worker");
        crew.kill(crewmen[Math.floor(random() * crewmen.length)]!);
        addWorker();
        done.workerKills++;
      }
    }
    await crew.ended(coordinator);
    const lines = readMetrics(run);
    const sum = (metric: string) => lines.reduce((total, line) => total + (line[metric] ?? 0), 0);
    return {
      sha: createHash("sha256")
        .update(readFileSync(join(run, "adapter.gguf")))
        .digest("hex"),
      seconds: Math.round((performance.now() - started) / 100) / 10,
      ...done,
      jobsHere: sum("cluster/jobs_here"),
      jobsElsewhere: sum("cluster/jobs_elsewhere"),
      redelivered: sum("cluster/redelivered"),
      abandoned: sum("cluster/abandoned"),
    };
  } finally {
    await crew.dispose();
  }
}

/** Distributes `count` events over the steps: as evenly as possible, none after the last. */
function spread(count: number, steps: number): number[] {
  const at = new Array<number>(steps).fill(0);
  for (let k = 0; k < count; k++) at[1 + Math.floor(((k + 0.5) * (steps - 1)) / count)]!++;
  return at;
}

function readMetrics(run: string): Record<string, number>[] {
  const file = join(run, "metrics.jsonl");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, number>);
}

const countSteps = (run: string) => Math.max(0, ...readMetrics(run).map((line) => line["training/global_step"] ?? 0));

interface Member {
  command: string;
  child: ChildProcess;
  isKilled: boolean;
  /** The end of its output. */
  log: string;
}

/** The processes of a run. */
class Crew {
  private readonly members: Member[] = [];

  constructor(
    private readonly cria: readonly string[],
    private readonly bus: string | undefined,
    private readonly prefix: string,
  ) {}

  start(command: "train" | "worker", words: readonly string[]): Member {
    const bus = this.bus ? ["--bus", this.bus, "--prefix", this.prefix] : [];
    const [program, ...first] = this.cria;
    const child = spawn(program!, [...first, command, ...words, ...bus], { stdio: ["ignore", "pipe", "pipe"] });
    const member: Member = { command, child, isKilled: false, log: "" };
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text) => {
        member.log = (member.log + text).slice(-20_000);
      });
    this.members.push(member);
    return member;
  }

  running(command: string): Member[] {
    return this.members.filter((member) => member.command === command && isRunning(member));
  }

  kill(member: Member): void {
    member.isKilled = true;
    member.child.kill("SIGKILL");
  }

  /**
   * Waits while a process runs.
   * @throws Error when it or another one fails before that, or it takes too long.
   */
  async during(member: Member, isDone: () => boolean): Promise<void> {
    const started = performance.now();
    while (!isDone()) {
      this.checkAlive();
      if (!isRunning(member)) return;
      if (performance.now() - started > PATIENCE_MS) throw this.makeError(`${member.command} gets no further`);
      await delay(20);
    }
  }

  async ended(member: Member): Promise<void> {
    await this.during(member, () => !isRunning(member));
    this.checkAlive();
  }

  /** A worker that nobody killed and that ended is missed by the coordinator, which waits for it. */
  private checkAlive(): void {
    for (const { command, child, isKilled } of this.members) {
      const { exitCode, signalCode } = child;
      if (!isKilled && (exitCode || signalCode))
        throw this.makeError(`${command} ended with ${exitCode ?? signalCode}`);
    }
  }

  private makeError(problem: string): Error {
    const logs = this.members.map(({ command, isKilled, log }) => {
      return `${command}${isKilled ? ", killed" : ""}:\n${log.slice(-3000)}`;
    });
    return new Error(`${problem}\n${logs.join("\n")}`);
  }

  async dispose(): Promise<void> {
    for (const member of this.members) if (isRunning(member)) member.child.kill("SIGKILL");
    while (this.members.some(isRunning)) await delay(20);
  }
}

const isRunning = ({ child }: Member) => child.exitCode === null && child.signalCode === null;
