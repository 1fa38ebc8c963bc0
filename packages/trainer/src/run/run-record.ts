import { join } from "node:path";
import { findProblems } from "../diagnose/find-problems.js";
import type { Finding } from "../diagnose/finding.js";
import { PROBLEMS, ProblemLog } from "../diagnose/problem-log.js";
import { type Beginning, readBeginning } from "../diagnose/read-beginning.js";
import type { Report } from "../events.js";
import type { StepResult } from "../step/training-step.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Generation } from "../trackers/generation.js";
import { pickGenerations } from "../trackers/pick-generations.js";
import { dumpTrajectories, listShown, saveDump } from "../validation/dump-trajectories.js";
import {
  compareEnds,
  type Measurements,
  measureStep,
  type RunProgress,
  readFirstValidation,
} from "../validation/measure-progress.js";
import { runValidation } from "../validation/run-validation.js";
import type { Validation } from "../validation/validate.js";
import type { ActiveRun } from "./active-run.js";
import type { Training } from "./training.js";

/**
 * Records a run's measurements: passes them to the run folder, the trackers and the report, and summarizes the progress
 * at the end.
 */
export class RunRecord {
  private readonly history: StepMetrics[] = [];
  private readonly measurements: Measurements = { heldOut: [], training: [] };
  /** Conversations of the last validation, until its step is logged. */
  private generations: Generation[] | undefined;
  /** Rules whose findings have been reported. */
  private readonly told = new Set<string>();
  /** All problems found so far, current and past. */
  private problems = new ProblemLog();

  private constructor(
    private readonly training: Training,
    private readonly run: ActiveRun,
    /** The supervised fine-tuning that produced the starting policy; null: none. */
    private readonly beginning: Beginning | null,
    private readonly report: Report | undefined,
  ) {}

  static async open(
    training: Training,
    run: ActiveRun,
    { configFolder, report }: { configFolder: string; report?: Report },
  ): Promise<RunRecord> {
    const record = new RunRecord(training, run, await readBeginning(training.config, configFolder), report);
    if (run.resume) await record.restore();
    return record;
  }

  /** Restores the earlier measurements of a resumed run, because most of the learning may have happened before. */
  private async restore(): Promise<void> {
    const { folder, live } = this.run;
    this.history.push(...(await folder.readMetrics()));
    this.problems = new ProblemLog(await folder.readJson(PROBLEMS), this.history.at(-1)?.["training/global_step"]);
    live.restore(this.history);
    this.measurements.training.push(...this.history.flatMap((metrics) => measureStep(metrics) ?? []));
    const first = await readFirstValidation(this.validationFolder);
    if (first) this.measurements.heldOut.push(first);
  }

  /** Mean score of the last validation; null before the first. */
  get heldOut(): number | null {
    return this.measurements.heldOut.at(-1)?.success ?? null;
  }

  /** Validates the policy after a step, and returns further metrics of the step; none if there are no held-out rows. */
  async validate(step: number): Promise<StepMetrics> {
    const { training } = this;
    const result = await this.runValidation(step, `${step}.jsonl`);
    if (!result) return {};
    const count = training.config.trainer.log_val_generations;
    this.generations = pickGenerations(training.policy.engine, training.valRows, result.trajectories, count);
    if (result.success !== null) this.measurements.heldOut.push({ step, success: result.success });
    return { ...result.metrics, "timing_s/testing": result.seconds };
  }

  /** Validates at the user's request. Only its conversations are kept; the rest of the run is unchanged. */
  validateAsked(step: number): Promise<Validation | null> {
    return this.runValidation(step, `asked-${step}.jsonl`);
  }

  /** Writes the conversations of a step, with their advantages. */
  async dump(
    step: number,
    { trajectories, advantages, tokenDetails }: Pick<StepResult, "trajectories" | "advantages" | "tokenDetails">,
  ): Promise<void> {
    const { training } = this;
    const { logger, rollout_data_dir, rollout_data_detail } = training.config.trainer;
    if (!logger.includes("file") && !rollout_data_dir) return;
    const details = rollout_data_detail === "full" ? { tokenDetails, times: true } : {};
    const options = { step, rows: training.trainRows, advantages, ...details };
    const lines = dumpTrajectories(training.policy.engine, training.environment, trajectories, options);
    const file = join(rollout_data_dir ?? this.run.folder.file("rollouts"), `${step}.jsonl`);
    await saveDump(file, lines, listShown(trajectories));
  }

  /** Logs the metrics of a training step, and reports its gravest problem, each rule once. */
  async add(step: number, metrics: StepMetrics): Promise<void> {
    await this.log(step, metrics);
    const measured = measureStep(metrics);
    if (measured) this.measurements.training.push(measured);
    // Only the gravest is reported: the others are often its consequences, and are listed at the end.
    const problems = this.findProblems();
    const [problem] = problems;
    if (problem) await this.keep(step, problems);
    if (!problem || this.told.has(problem.rule)) return;
    this.told.add(problem.rule);
    this.report?.({ type: "problem", problem, runPath: this.run.folder.path });
  }

  /** Writes metrics to metrics.jsonl and to the trackers. */
  async log(step: number, metrics: StepMetrics): Promise<void> {
    const { folder, trackers } = this.run;
    this.history.push(metrics);
    if (this.training.config.trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
    trackers.log(step, metrics, this.generations);
    this.generations = undefined;
  }

  /** Returns the run's progress and its problems. */
  summarize(): { progress: RunProgress | null; problems: Finding[] } {
    // A short run gets no further steps, so that fewer steps suffice for a finding.
    return { progress: compareEnds(this.measurements), problems: this.problems.list(this.findProblems(3)) };
  }

  /** Saves problems, so that they can still be reported once they no longer hold. */
  private async keep(step: number, problems: readonly Finding[]): Promise<void> {
    this.problems.note(step, problems);
    if (this.training.config.trainer.logger.includes("file"))
      await this.run.folder.writeJson(PROBLEMS, this.problems.all);
  }

  private get validationFolder(): string {
    return this.training.config.trainer.validation_data_dir ?? this.run.folder.file("validation");
  }

  private runValidation(step: number, name: string): Promise<Validation | null> {
    const { report, run } = this;
    return runValidation(this.training, { step, file: join(this.validationFolder, name), report, live: run.live });
  }

  private findProblems(fewest?: number): Finding[] {
    const { beginning } = this;
    const { environment, config } = this.training;
    return findProblems(this.history, { hasTools: environment.tools.size > 0, config, beginning, fewest });
  }
}
