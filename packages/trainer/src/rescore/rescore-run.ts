import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError, hasFailed, type LoadedImage } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { DumpImages, type DumpLine, judgeAgain, readDump } from "@cria/records";
import type { DatasetRow } from "@cria/rollout";
import { makeAllFailedError } from "@cria/rollout/internal";
import { RunFolder } from "../checkpoints/run-folder.js";
import { trainKeys } from "../config/import/config-keys.js";
import { importData } from "../config/import/data.js";
import { importDevice } from "../config/import/device.js";
import { importRewards } from "../config/import/rewards.js";
import { imageOptions } from "../config/options/environment.js";
import { listAddresses } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import { fetchAddresses } from "../hub/fetch-addresses.js";
import { makeRewardAggregator, openJudgedRewards, openRewards } from "../rewards/open-rewards.js";
import type { StepMetrics } from "../step-metrics.js";
import { Disposables } from "../task/disposables.js";
import { openData } from "../task/open-data.js";
import { startTrackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import { providePackages } from "../user-code/provide-packages.js";
import { openRegistries } from "../user-code/registries.js";
import { saveDump } from "../validation/dump-trajectories.js";
import { readRun, readStep, type SavedDump, type SavedRun } from "./read-run.js";
import { makeRescoreConfig, type OtherReward } from "./rescore-config.js";
import {
  type ChangedJudgement,
  count,
  describeOutcome,
  findMostChanged,
  listChanged,
  measureDump,
  type Outcome,
  type RescoreCounts,
} from "./summarize.js";

export interface RescoreOptions extends OtherReward {
  /** The new run folder, which must not exist or be empty; default: the run's path followed by "-rescored". */
  out?: string;
  /** Number of most-changed conversations to name in the result; default 5. */
  most?: number;
  /** Trackers that get the metrics, step by step; default: none. */
  trackers?: readonly Tracker[];
  report?: Report;
  signal?: AbortSignal;
}

const { text } = optionChecks;

const rescoreChecks: ChecksOf<Required<RescoreOptions>> = {
  reward: text,
  config: text,
  overrides: [Array.isArray, "a list of key.path=value"],
  out: text,
  most: optionChecks.whole,
  trackers: [Array.isArray, "a list of trackers"],
  report: optionChecks.function,
  signal: optionChecks.signal,
};

export interface RescoreResult {
  /** The new run folder. */
  path: string;
  /** Counts for the training's conversations, and for the validations'. */
  rollouts: RescoreCounts;
  validation: RescoreCounts;
  mostChanged: ChangedJudgement[];
  seconds: number;
}

/**
 * Judges the saved conversations of a run with another reward, and writes them as a separate run: dumps,
 * metrics.jsonl, config.json, run.json and the result as rescore.json. The original run is not changed. On failure
 * the new folder is removed.
 * @param path a run folder of `cria train`.
 * @throws DataError when it is none; ConfigError for an option that is unknown or wrong, a wrong reward, or a folder
 * that is not empty; ToolError when the judge fails at every conversation of the first file; the signal's reason.
 */
export function rescoreRun(path: string, options: RescoreOptions): Promise<RescoreResult> {
  providePackages();
  return Disposables.open(async (open) => {
    checkOptions("rescoreRun", options, rescoreChecks);
    const run = readRun(path);
    const config = makeRescoreConfig(run, options);
    const out = resolve(options.out ?? `${resolve(path)}-rescored`);
    checkFree(out);
    const { report, signal } = options;
    if (config.reward_model.enable)
      await fetchAddresses(listAddresses({ reward_model: config.reward_model }), { report, signal });
    const judge = await openJudge(config, run, report);
    open.add(judge.dispose);
    // Created last, so that an earlier failure leaves nothing to clean up.
    const folder = await RunFolder.create(out);
    try {
      return await rescoreDumps(run, config, folder, judge, options);
    } catch (error) {
      await rm(out, { recursive: true, force: true });
      throw error;
    } finally {
      await open.dispose();
    }
  });
}

function checkFree(out: string): void {
  if (!existsSync(out) || readdirSync(out).length === 0) return;
  throw new ConfigError("is not empty", {
    code: "config/bad-argument",
    subject: out,
    expected: "a folder that does not exist yet, or is empty",
    remedy: "name another one: --out <folder>",
  });
}

type Judge = Pick<Parameters<typeof judgeAgain>[1], "manager" | "aggregate"> & {
  rows: Record<SavedDump["folder"], ReadonlyMap<string, DatasetRow>>;
  dispose: () => Promise<void>;
};

async function openJudge(config: TrainConfig, run: SavedRun, report: Report | undefined): Promise<Judge> {
  const { rollout } = config.actor_rollout_ref;
  const rows = await openRows(config, run.configFolder, report);
  const rewards = importRewards(config);
  const rules = await openRewards(rewards, run.configFolder, {
    registries: openRegistries(),
    responseLength: Math.min(rollout.response_length, config.data.max_response_length),
    // Scores of a conversation's tools and interaction are in its dump.
    rows: [],
    tools: new Map(),
    interactions: null,
    defaultAgentLoop: rollout.agent.default_agent_loop,
  });
  const models = await openJudgedRewards(rewards, run.configFolder, rules, importDevice(config));
  return {
    manager: models ?? rules,
    aggregate: makeRewardAggregator(rewards.aggregation),
    rows,
    dispose: async () => models?.dispose(),
  };
}

/** Rows by uid, for data that dumps lack. A run can be judged without them. */
async function openRows(config: TrainConfig, folder: string, report: Report | undefined): Promise<Judge["rows"]> {
  const byUid = (rows: readonly DatasetRow[]) => new Map(rows.map((row) => [row.uid, row]));
  try {
    // All rows, because it is unknown which ones were sampled.
    const data = { ...importData(config), trainMaxSamples: -1, valMaxSamples: -1 };
    const environment = { images: trainKeys.read(config, imageOptions) };
    const { train, val } = await openData({ data, environment }, folder, { section: config.data });
    return { rollouts: byUid(train), validation: byUid(val) };
  } catch (error) {
    const why = (error as Error).message.split("\n", 1)[0];
    makeSay(report)(`the run's rows cannot be read, so reward functions see no extra_info of theirs: ${why}`);
    return { rollouts: new Map(), validation: new Map() };
  }
}

async function rescoreDumps(
  run: SavedRun,
  config: TrainConfig,
  folder: RunFolder,
  judge: Judge,
  { trackers = [], report, signal, most = 5 }: RescoreOptions,
): Promise<RescoreResult> {
  const started = performance.now();
  const written = nameRun(config, folder.path);
  await folder.writeConfig(written);
  if (run.origin) await folder.writeJson("run.json", { ...run.origin, started: new Date().toISOString() });
  const progress = new WorkReporter(report, "rescore");
  const total = await countLines(run.dumps, signal);
  let done = 0;
  progress.update(0, total);
  const steps = new Map<number, StepMetrics>();
  const outcomes: Record<SavedDump["folder"], Outcome[]> = { rollouts: [], validation: [] };
  let mostChanged: ChangedJudgement[] = [];
  let rowless = 0;
  let hasJudged = false;
  for (const dump of run.dumps) {
    const files = new DumpImages(dump.path);
    const lines = await readLines(dump.path, files);
    const judged = await judgeAgain(lines, {
      ...judge,
      rows: judge.rows[dump.folder],
      signal,
      onJudged: () => progress.update(++done, total),
    });
    const skipped = judged.filter(({ trajectory }) => trajectory === null).length;
    done += skipped;
    if (skipped > 0) progress.update(done, total);
    rowless += judged.filter(({ hasRow }) => !hasRow).length;
    const file = join(dump.folder, dump.name);
    // A broken judge must not look like a strict one; a later outage loses nothing that was judged.
    const known = judged.flatMap(({ trajectory }) => trajectory ?? []);
    if (!hasJudged && known.length > 0 && known.every(hasFailed)) throw makeAllFailedError(file, known);
    hasJudged ||= known.length > 0;
    const rewritten = judged.map(({ line }) => line);
    await saveDump(folder.file(file), rewritten, await listFiles(rewritten, files));
    outcomes[dump.folder].push(...judged.map(describeOutcome));
    mostChanged = findMostChanged(mostChanged, listChanged(file, judged), most);
    const step = readStep(dump.name);
    if (step !== null)
      steps.set(step, { "training/global_step": step, ...steps.get(step), ...measureDump(dump.folder, judged) });
  }
  progress.end();
  const say = makeSay(report);
  if (rowless > 0 && judge.rows.rollouts.size + judge.rows.validation.size > 0)
    say(`${rowless} conversations are of rows that the data no longer has: their extra_info is empty`);
  await writeMetrics(steps, written, folder, trackers, say);
  const result: RescoreResult = {
    path: folder.path,
    rollouts: count(outcomes.rollouts),
    validation: count(outcomes.validation),
    mostChanged,
    seconds: (performance.now() - started) / 1000,
  };
  await folder.writeJson("rescore.json", { ...result, of: resolve(run.path) });
  return result;
}

/** Writes metrics by step, to metrics.jsonl and to the trackers. */
async function writeMetrics(
  steps: ReadonlyMap<number, StepMetrics>,
  config: TrainConfig,
  folder: RunFolder,
  trackers: readonly Tracker[],
  warn: (text: string) => void,
): Promise<void> {
  const tracked = await startTrackers(trackers, config, { folder: folder.path, resumedStep: null, warn });
  for (const [step, metrics] of [...steps].sort(([a], [b]) => a - b)) {
    await folder.appendLine("metrics.jsonl", metrics);
    tracked.log(step, metrics);
  }
  await tracked.finish("finished");
}

/** Config of the new run: its dumps are in its own folder. */
function nameRun(config: TrainConfig, path: string): TrainConfig {
  const { trainer } = config;
  return {
    ...config,
    trainer: {
      ...trainer,
      experiment_name: basename(path),
      project_name: basename(dirname(path)),
      default_local_dir: dirname(dirname(path)),
      rollout_data_dir: null,
      validation_data_dir: null,
    },
  };
}

async function readLines(file: string, images: DumpImages): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(file)) lines.push(await images.fill(line));
  return lines;
}

/** Image files, including those that no message shows. */
async function listFiles(lines: readonly DumpLine[], files: DumpImages): Promise<LoadedImage[]> {
  const shown = lines.flatMap(({ images = [] }) => images);
  return Promise.all(shown.map(({ mime_type: mimeType, ...image }) => files.load({ ...image, mimeType })));
}

async function countLines(dumps: readonly SavedDump[], signal: AbortSignal | undefined): Promise<number> {
  let total = 0;
  for (const { path } of dumps) {
    signal?.throwIfAborted();
    for await (const _ of readDump(path)) total++;
  }
  return total;
}
