import { stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { HeldOutPoint, LiveState, RunSummary } from "@cria/viewer/api";
import { type FoundRun, findRuns } from "./find-runs.js";
import { type DumpFile, listDumps } from "./list-dumps.js";
import { MetricsFile, readHeldOut } from "./metrics-file.js";
import { isObject, readSmallObject } from "./read-small-json.js";
import { readLive, readStatus } from "./run-status.js";

/** Points of the spark line. */
const CURVE = 60;

/**
 * A run read from its folder, again and again, each time only the new part. It never throws, whatever the folder
 * contains.
 */
export class RunReader {
  readonly metrics: MetricsFile;
  config: Record<string, unknown> | null = null;
  dumps: DumpFile[] = [];
  live: LiveState | null = null;
  /** Each validation that judged something. */
  heldOut: HeldOutPoint[] = [];
  summary: RunSummary;
  private configTime = -1;

  constructor(readonly run: FoundRun) {
    this.metrics = new MetricsFile(join(run.path, "metrics.jsonl"));
    this.summary = { ...run, ...EMPTY };
  }

  /** True if its folder still exists. */
  async exists(): Promise<boolean> {
    return (await stat(this.run.path).catch(() => null)) !== null;
  }

  /** True if it shares its work with other machines, or did. */
  get isShared(): boolean {
    return (this.live?.cluster ?? null) !== null || this.metrics.rows.some((row) => row.has("cluster/workers"));
  }

  /** Reads the new part. */
  async refresh(): Promise<RunSummary> {
    const { path } = this.run;
    await this.metrics.refresh();
    await this.readConfig();
    this.dumps = await listDumps(path, this.config);
    this.live = await readLive(path);
    const results = await Promise.all(
      ["summary.json", "rescore.json"].map((name) => readSmallObject(join(path, name))),
    );
    this.summary = await this.summarize({ ...results[0], ...results[1] });
    return this.summary;
  }

  private async readConfig(): Promise<void> {
    const file = join(this.run.path, "config.json");
    const time = (await stat(file).catch(() => null))?.mtimeMs ?? -1;
    if (time === this.configTime) return;
    this.configTime = time;
    this.config = await readSmallObject(file);
  }

  /** @param result the final results of a command: `cria demo`, `cria rescore`. */
  private async summarize(result: Record<string, unknown>): Promise<RunSummary> {
    const { run, config, dumps, live } = this;
    const { rows, modified } = this.metrics;
    const step = Math.max(0, live?.step ?? 0, rows.at(-1)?.get("training/global_step") ?? 0);
    const total = live?.total ?? readNumber(config, "trainer", "total_training_steps");
    const { status, error } = await readStatus(run.path, {
      live,
      step,
      total,
      hasResults: rows.length > 0 || dumps.length > 0,
      isWhole: Object.keys(result).length > 0 || (rows.length === 0 && dumps.every(({ kind }) => kind === "rollout")),
    });
    const origin = await readSmallObject(join(run.path, "run.json"));
    const started = Date.parse(String(origin?.started));
    const model =
      config && (readString(config, "actor_rollout_ref", "model", "path") ?? readString(config, "model", "path"));
    this.heldOut = this.findHeldOut(result, step);
    const [first, last] = [this.heldOut[0], this.heldOut.at(-1)];
    const isSft = rows.some((row) => row.has("train/loss"));
    const sum = (name: string) => rows.reduce((all, row) => all + (row.get(name) ?? 0), 0);
    return {
      ...run,
      status,
      step,
      total,
      startedAt: Number.isFinite(started) ? started : this.configTime < 0 ? null : this.configTime,
      updatedAt: latest([modified, live?.at ?? null, ...dumps.map((dump) => dump.modified)]),
      seconds: sum("perf/time_per_step") + sum("timing_s/testing") + sum("timing_s/save_checkpoint"),
      tokens: sum("perf/total_num_tokens"),
      model: model ? basename(model.replaceAll("\\", "/")) : null,
      algorithm: isSft ? "sft" : readString(config, "algorithm", "adv_estimator"),
      seed: readNumber(config, "actor_rollout_ref", "rollout", "seed") ?? readNumber(config, "data", "seed"),
      // The only validation of a stopped run is the one before training.
      before: first && (this.heldOut.length > 1 || first.step === 0) ? first.success : null,
      after: last && last.step > 0 ? last.success : null,
      curve: shorten(rows.flatMap((row) => row.get(isSft ? "train/loss" : "reward/score/mean") ?? [])),
      trouble: this.findTrouble(error),
    };
  }

  /** Validations of the training, else a command's measurements before and after it. */
  private findHeldOut(result: Record<string, unknown>, lastStep: number): HeldOutPoint[] {
    const points = this.metrics.rows.flatMap((row) => {
      const success = readHeldOut(row);
      return success === null ? [] : { step: row.get("training/global_step") ?? 0, success };
    });
    if (points.length > 0) return points;
    const measured = [
      [0, "before"],
      [lastStep, "after"],
    ] as const;
    return measured.flatMap(([step, name]) => {
      const success = readNumber(result, name, "sampled");
      return success === null ? [] : { step, success };
    });
  }

  private findTrouble(error: string | null): string | null {
    const { rows, damaged } = this.metrics;
    const texts = [
      error === null ? null : `it failed: ${error || "no reason was recorded"}`,
      this.config === null && this.configTime >= 0 ? "config.json is damaged" : null,
      damaged > 0 ? `${damaged} of ${rows.length + damaged} lines of metrics.jsonl are damaged` : null,
    ].filter((text) => text !== null);
    return texts.length > 0 ? texts.join("; ") : null;
  }
}

/** A run's summary from its folder. Damage, half-written files and old formats go into `trouble`; it never throws. */
export async function readRun(run: FoundRun | string): Promise<RunSummary> {
  if (typeof run !== "string") return new RunReader(run).refresh();
  const [found] = (await findRuns([run])).filter(({ path }) => resolve(path) === resolve(run));
  return new RunReader(found ?? { id: basename(resolve(run)), name: basename(resolve(run)), path: run }).refresh();
}

const EMPTY: Omit<RunSummary, keyof FoundRun> = {
  status: "empty",
  step: 0,
  total: null,
  startedAt: null,
  updatedAt: null,
  seconds: 0,
  tokens: 0,
  model: null,
  algorithm: null,
  seed: null,
  before: null,
  after: null,
  curve: [],
  trouble: null,
};

function shorten(values: readonly number[]): number[] {
  if (values.length <= CURVE) return [...values];
  return Array.from({ length: CURVE }, (_, k) => {
    const part = values.slice(Math.floor((k * values.length) / CURVE), Math.floor(((k + 1) * values.length) / CURVE));
    return part.reduce((a, b) => a + b) / part.length;
  });
}

function latest(times: readonly (number | null)[]): number | null {
  return times.reduce<number | null>((last, time) => (time !== null && time > (last ?? 0) ? time : last), null);
}

/** Reads a value of a config, which may be damaged or old. */
function read(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((within, key) => (isObject(within) ? within[key] : undefined), value);
}

function readNumber(value: unknown, ...keys: string[]): number | null {
  const found = read(value, keys);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

function readString(value: unknown, ...keys: string[]): string | null {
  const found = read(value, keys);
  return typeof found === "string" ? found : null;
}
