import { type DumpLine, readDump } from "@cria/records";
import { diagnoseRun, type Finding } from "@cria/trainer";
import type { LiveState, RunSummary } from "@cria/viewer/api";
import { findRuns } from "../runs/find-runs.js";
import type { MetricRow } from "../runs/metrics-file.js";
import { RunReader } from "../runs/run-reader.js";

/** The displayed state of a run. */
export interface RunView {
  summary: RunSummary;
  live: LiveState | null;
  rows: readonly MetricRow[];
  findings: readonly Finding[];
  /** Conversations of the newest step. */
  newest: NewestStep | null;
}

export interface NewestStep {
  step: number | null;
  /** Rewards by prompt; null for a conversation that failed. */
  groups: { uid: string; rewards: (number | null)[] }[];
  /** The sample conversation: the worst that did not fail. */
  sample: DumpLine | null;
  /** Failed calls by kind, the most frequent first. */
  failures: [kind: string, count: number][];
}

/** Dumps larger than this are not read again for each refresh. */
const LARGEST = 256 << 20;

/** Reads a growing run. It never throws, whatever the folder contains. */
export class ViewReader {
  private reader: RunReader | null = null;
  private newest: NewestStep | null = null;
  private findings: Finding[] = [];
  private seen = "";

  constructor(private readonly path: string) {}

  async refresh(): Promise<RunView> {
    this.reader ??= new RunReader((await findRuns([this.path]))[0] ?? { id: "run", name: this.path, path: this.path });
    const { reader } = this;
    const summary = await reader.refresh();
    const dump = reader.dumps.filter(({ kind, step }) => kind === "training" && step !== null).at(-1);
    const state = `${reader.metrics.rows.length} ${dump?.file} ${dump?.modified}`;
    if (state !== this.seen) {
      this.seen = state;
      this.findings = await diagnoseRun(this.path);
      this.newest = dump && dump.size <= LARGEST ? await readNewest(dump.file, dump.step).catch(() => null) : null;
    }
    const { findings, newest } = this;
    return { summary, live: reader.live, rows: reader.metrics.rows, findings, newest };
  }
}

async function readNewest(file: string, step: number | null): Promise<NewestStep> {
  const groups = new Map<string, (number | null)[]>();
  const failures = new Map<string, number>();
  let sample: DumpLine | null = null;
  for await (const line of readDump(file)) {
    const rewards = groups.get(line.uid) ?? [];
    rewards[line.sample] = line.reward;
    groups.set(line.uid, rewards);
    for (const failure of line.turns.flatMap((turn) => turn.failures ?? []))
      if (failure !== null) failures.set(failure, (failures.get(failure) ?? 0) + 1);
    if (line.reward !== null && (sample === null || line.reward < sample.reward!)) sample = line;
  }
  return {
    step,
    groups: [...groups].map(([uid, rewards]) => ({ uid, rewards: Array.from(rewards, (reward) => reward ?? null) })),
    sample,
    failures: [...failures].sort((a, b) => b[1] - a[1]),
  };
}
