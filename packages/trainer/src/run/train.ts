import { ConfigError } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { checkRun } from "../checkpoints/open-run.js";
import { fetchCheckpoint } from "../cluster/fetch-checkpoint.js";
import { takeLead } from "../cluster/take-lead.js";
import { listInert } from "../config/list-inert.js";
import { type ConfigWarning, listWarnings } from "../config/list-warnings.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Finding } from "../diagnose/finding.js";
import type { Report, StepEvent } from "../events.js";
import { fetchTrainAddresses } from "../hub/fetch-addresses.js";
import { RunningStream } from "../running.js";
import type { StepMetrics } from "../step-metrics.js";
import { areFiles } from "../task/check-definition.js";
import { findOverlongPrompts } from "../task/find-overlong-prompts.js";
import { findUnseenTools } from "../task/find-unseen-tools.js";
import { Task } from "../task/task.js";
import type { TaskDefinition } from "../task/task-definition.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import type { RunProgress } from "../validation/measure-progress.js";
import type { Validation } from "../validation/validate.js";
import { listContexts, listContextWarnings } from "./list-contexts.js";
import { makeConfig } from "./make-config.js";
import { TrainingInterrupted } from "./run-steps.js";
import { openSession, type Session } from "./session.js";
import type { TrainOptions, ValidationOptions } from "./train-options.js";
import { trainSession } from "./train-session.js";

/** A step that is done. */
export interface TrainStep {
  /** From 1, over resumed runs. */
  step: number;
  /** Steps of the whole training. */
  total: number;
  /** Mean reward of the conversations that did not fail; null when all did. */
  reward: number | null;
  /** Mean score of them, without step rewards and shaping; null when none was judged. */
  success: number | null;
  /** Success of the last validation; null before the first. */
  heldOut: number | null;
  /** By name; docs/metrics.md says what each means. */
  metrics: StepMetrics;
}

/** How a training ended. */
export interface TrainResult {
  /** Success at its first measurement and at its last: of validations, or of training where there were fewer than two. */
  before: number | null;
  after: number | null;
  /** The same with their steps, and what was measured; null where there is nothing to compare. */
  progress: RunProgress | null;
  /** The trained adapter, a GGUF that stock llama.cpp loads; null with full training. */
  adapter: string | null;
  /** The trained model; null with LoRA. */
  model: string | null;
  /** The run folder. */
  folder: string;
  /** Of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** What is wrong with the run; the gravest first. Empty when nothing is. */
  problems: Finding[];
  /** Held-out rows that were validated on. */
  heldOutRows: number;
}

/**
 * A training under way: await its result, which is of the steps that were taken, iterate over its steps, or both. Leaving the
 * iteration stops the training; its result says how it ended. A failure reaches everyone who awaits or iterates; where nobody
 * does it is an unhandled rejection.
 * @throws ConfigError, DataError, EngineError, HubError or ToolError, each naming what is wrong; TrainingInterrupted when the signal
 * aborted; ClusterError "cluster/lease-lost" when the lead of the bus was lost before the first step, or as the cause of TrainingInterrupted.
 */
export class TrainRun extends RunningStream<TrainResult, TrainStep> {
  protected readonly result: Promise<TrainResult>;
  private readonly evaluations: PromiseWithResolversOf<Validation | null>[] = [];
  private isStopping = false;

  constructor(options: TrainOptions) {
    super();
    this.result = this.watch(this.run(options)).finally(() => this.refuseEvaluations());
  }

  /**
   * Ends the training after the step that it takes; what was done is saved, and the result is of that. A run that is over stays as
   * it is.
   */
  stop(): void {
    this.isStopping = true;
  }

  /**
   * Validates once more, after the step that the training takes; the training waits for it. Null where there are no held-out rows.
   * @throws ConfigError when no further step comes; the signal's reason when it aborts.
   */
  evaluate(): Promise<Validation | null> {
    return new Promise((resolve, reject) => {
      this.evaluations.push({ resolve, reject });
      if (this.isOver) this.refuseEvaluations();
    });
  }

  private refuseEvaluations(): void {
    for (const { reject } of this.evaluations.splice(0))
      reject(
        new ConfigError("comes after the training's last step", {
          code: "config/run-over",
          subject: "evaluate()",
          expected: "a training that takes further steps",
          received: `one that ended after ${this.items.length} steps`,
          remedy: "load what it trained: loadPolicy(model, { lora: { path: adapter } })",
        }),
      );
  }

  protected leave(): void {
    this.stop();
  }

  private async run(given: TrainOptions): Promise<TrainResult> {
    const options = makeAgentTask(given);
    const { task, bus, configFolder = process.cwd() } = options;
    const { config, registries, findsToolFormat } = makeConfig(options);
    const report: Report = (event) => {
      if (event.type === "step") this.add(describeStep(event));
      options.report?.(event);
    };
    const own = (options.trackers ?? []).filter((tracker) => typeof tracker !== "string");
    const trackers = [...makeTrackers(config), ...own];
    await fetchTrainAddresses(config, { report, signal: options.signal });
    await warnOfSettings(config, configFolder, report);
    // The newest checkpoint is that of whoever had the lead before.
    const lead = await takeLead(bus, { signal: options.signal, report });
    const { signal } = lead;
    let session: Session | undefined;
    try {
      if (!config.trainer.val_only) {
        await fetchCheckpoint(bus, config, { signal, report });
        await checkRun(config);
      }
      session = await openSession(config, configFolder, {
        task,
        valRows: await loadHeldOut(options, config, configFolder),
        registries,
        findsToolFormat,
        bus,
        signal,
        report,
      });
      const overlong = await findOverlongPrompts(session, configFolder, report);
      if (overlong !== null) report({ type: "warning", text: overlong });
      const unseen = findUnseenTools(session.policy, session.environment, session.trainRows);
      if (unseen !== null) report({ type: "warning", text: unseen });
      warnOfFewRows(session, report);
      const summary = await trainSession(session, {
        configFolder,
        report,
        trackers,
        isStopping: () => this.isStopping,
        afterStep: async (validate) => {
          for (const { resolve, reject } of this.evaluations.splice(0)) await validate().then(resolve, reject);
        },
      });
      return describeResult(session, summary);
    } catch (error) {
      // An interruption says itself what it cost.
      throw error instanceof TrainingInterrupted ? error : lead.explain(error);
    } finally {
      await session?.dispose();
      await lead.end();
    }
  }
}

/** Warns of what a config says, before anything is loaded; of what has no effect it only tells. */
async function warnOfSettings(config: TrainConfig, folder: string, report: Report): Promise<void> {
  const describe = ({ key, found, remedy }: ConfigWarning) => `${key}: ${found}; ${remedy}`;
  for (const warning of [...listWarnings(config), ...listContextWarnings(await listContexts(config, folder))])
    report({ type: "warning", text: describe(warning) });
  for (const inert of listInert(config)) report({ type: "notice", text: describe(inert) });
}

function warnOfFewRows({ config, trainRows }: Session, report: Report): void {
  const { train_batch_size: asked } = config.data;
  if (asked <= trainRows.length || config.trainer.val_only) return;
  const text = `data.train_batch_size: is ${asked}, and there ${trainRows.length === 1 ? "is 1 row" : `are ${trainRows.length} rows`}: each step takes all of them; add rows, or lower it`;
  report({ type: "warning", text });
}

/** Held-out rows that the task makes, or that lie in memory; undefined: those of the config, as it says. */
export async function loadHeldOut(
  { task, validation }: TrainOptions,
  { data }: TrainConfig,
  folder: string,
): Promise<DatasetRow[] | undefined> {
  const name = "validation.rows";
  if (validation && !areFiles(validation.rows))
    return (task?.withRows(validation.rows, name) ?? new Task({ rows: validation.rows }, name)).load();
  if (!task || !data.val_files) return undefined;
  return task
    .withRows(
      data.val_files.map((file) => resolvePath(folder, file)),
      name,
    )
    .load();
}

interface PromiseWithResolversOf<T> {
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

/**
 * Trains a policy on a task: `await train({ model, task })`, or `for await (const step of train({ model, task }))`. It
 * begins at once, and several may run at a time, each in a run folder of its own (`name`, `folder`). Wrong options
 * throw where the training is awaited or iterated.
 */
export function train<Item extends object | string = string, Row extends object = object>(
  options: Omit<TrainOptions, "task" | "rows" | "agent" | "validation"> & {
    task?: Task<Row>;
    validation?: ValidationOptions<HeldOutRow<Item, Row>>;
  } & AgentTask<Item>,
): TrainRun {
  return new TrainRun(options as TrainOptions);
}

/** Rows decide the type of `row` that an agent sees. */
interface AgentTask<Item extends object | string> {
  rows?: readonly Item[] | string | readonly string[];
  agent?: TaskDefinition<Item extends object ? Item : DatasetRow>["agent"];
}

/** Held-out rows are of the task's kind, or of the agent's; they decide no type. */
type HeldOutRow<Item extends object | string, Row extends object> = NoInfer<Item extends object ? Item : Row>;

/** `rows` and `agent` as the task that they are. @throws ConfigError for one without the other, or beside a task. */
export function makeAgentTask({ rows, agent, task, ...options }: TrainOptions): TrainOptions {
  if (rows === undefined && agent === undefined) return { task, ...options };
  if (task === undefined && rows !== undefined && agent !== undefined)
    return { task: new Task({ rows, agent }), ...options };
  const given = Object.entries({ task, rows, agent }).flatMap(([name, value]) => (value === undefined ? [] : name));
  throw new ConfigError("do not say a task", {
    code: "config/bad-value",
    subject: "train: rows, agent",
    expected: "rows and agent, or task",
    received: given.join(", "),
    remedy: "train({ model, task: defineTask({ rows, tools, reward }) }) is for a task without an agent",
  });
}

function describeStep({ step, total, metrics, heldOut }: StepEvent): TrainStep {
  return {
    step,
    total,
    reward: metrics["critic/score/mean"] ?? null,
    success: metrics["reward/score/mean"] ?? null,
    heldOut,
    metrics,
  };
}

function describeResult(
  { policy, valRows }: Session,
  { path, weights, metrics, progress, problems }: Awaited<ReturnType<typeof trainSession>>,
): TrainResult {
  const isLora = policy.engine.info.trainable === "lora";
  return {
    before: progress?.before.success ?? null,
    after: progress?.after.success ?? null,
    progress,
    adapter: isLora ? weights : null,
    model: isLora ? null : weights,
    folder: path,
    metrics,
    problems,
    heldOutRows: valRows.length,
  };
}
