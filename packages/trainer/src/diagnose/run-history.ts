import { readKey } from "../config/raw-config.js";
import type { StepMetrics } from "../step-metrics.js";
import { average } from "./average.js";
import { readFacts } from "./line-facts.js";
import type { Beginning } from "./read-beginning.js";

/** Facts about a run beside its metrics. */
export interface RunContext {
  /** True if conversations have tools. */
  hasTools: boolean;
  /** The resolved config, as in `config.json`; rules that need a missing value report nothing. */
  config?: unknown;
  /** The supervised fine-tuning from which the policy started; default: unknown. */
  beginning?: Beginning | null;
  /** Minimum number of steps before any rule applies; default 5. */
  fewest?: number;
}

/** Number of first and of last steps that are compared. */
export const WINDOW = 5;
/** A rise of the mean score by this much since the beginning counts as learning. */
const PROGRESS = 0.05;
/** Mean rewards below this share of their range come from a few lucky conversations. */
export const FEW = 0.05;
export const SCORE = "critic/score/mean";

/** The metrics of a run, with the statistics that rules use. */
export class RunHistory {
  /** All steps, in order, without lines that only have a validation. */
  readonly steps: readonly StepMetrics[];
  /** The last `WINDOW` steps. */
  readonly recent: readonly StepMetrics[];
  /** The first `WINDOW` steps. */
  readonly first: readonly StepMetrics[];
  /** Description of the symptom that a run has learned nothing recently; null: it has learned. */
  readonly silence: string | null;

  constructor(
    private readonly lines: readonly StepMetrics[],
    readonly context: RunContext,
  ) {
    // A run of cria rescore is judged again and learns nothing, which is not its fault.
    this.steps = lines.filter((metrics) => "rollout/kept" in metrics && !("rescore/changed_ratio" in metrics));
    this.recent = this.steps.slice(-WINDOW);
    this.first = this.steps.slice(0, WINDOW);
    this.silence = this.describeSilence();
  }

  /** The last step with conversations to look at; 0 before the first. */
  get lastStep(): number {
    return this.steps.at(-1)?.["training/global_step"] ?? 0;
  }

  /** The values of a metric in the steps that have it. */
  values(name: string, steps = this.recent): number[] {
    return steps.flatMap((step) => step[name] ?? []);
  }

  /** Mean of a metric over the steps that have it; 0 if none has. */
  mean(name: string, steps = this.recent): number {
    return average(this.values(name, steps)) ?? 0;
  }

  /** Median of a metric, which a single step does not move; 0 if no step has it. */
  median(name: string, steps = this.recent): number {
    const values = this.values(name, steps).sort((a, b) => a - b);
    return values[Math.floor((values.length - 1) / 2)] ?? 0;
  }

  /** Largest value of a metric; -Infinity if no step has it. */
  max(name: string, steps = this.recent): number {
    return this.values(name, steps).reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  }

  /** Smallest value of a metric; Infinity if no step has it. */
  min(name: string, steps = this.recent): number {
    return this.values(name, steps).reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  }

  /** True if the mean reward has risen since the beginning. */
  get isRising(): boolean {
    return this.mean(SCORE) > this.mean(SCORE, this.first) + PROGRESS;
  }

  /**
   * Mean reward of the last three steps, and the best mean of three consecutive ones; null if there are fewer than
   * six.
   */
  get fall(): { best: number; now: number } | null {
    const scores = this.values(SCORE, this.steps);
    if (scores.length < 6) return null;
    const means = scores.slice(2).map((score, i) => (scores[i]! + scores[i + 1]! + score) / 3);
    return { best: Math.max(...means), now: means.at(-1)! };
  }

  /** Position of a mean within the range of all rewards of the run: 0 to 1. */
  place(score: number): number {
    const low = this.min("critic/score/min", this.steps);
    const high = this.max("critic/score/max", this.steps);
    return high > low ? (score - low) / (high - low) : 0;
  }

  /** Success of the validations, in order: accuracy if judged, else the reward. */
  get heldOut(): number[] {
    return this.lines.flatMap((line) => readFacts(line).heldOut ?? []);
  }

  /** Names of the parts of scores, in any step. */
  get parts(): string[] {
    return [...new Set(this.steps.flatMap((step) => readFacts(step).parts))];
  }

  /** A number in the config, by its path; null if there is none. */
  readConfig(path: string): number | null {
    const node = readKey(this.context.config, path);
    return typeof node === "number" ? node : null;
  }

  /** A text in the config, by its path; null if there is none. */
  readText(path: string): string | null {
    const node = readKey(this.context.config, path);
    return typeof node === "string" ? node : null;
  }

  /** True if a key of the config is false or missing. */
  isOff(path: string): boolean {
    return !readKey(this.context.config, path);
  }

  /** True if only a teacher's term is trained on: what rewards say, and whether they differ, teaches nothing. */
  get isTaughtAlone(): boolean {
    return !this.isOff("distillation.enabled") && this.isOff("distillation.distillation_loss.use_task_rewards");
  }

  private describeSilence(): string | null {
    if (this.recent.length === 0 || this.isRising || this.isTaughtAlone) return null;
    const count = (steps: readonly StepMetrics[]) => steps.filter(isSilent).length;
    // One lucky conversation among hundreds is not learning; neither are several, if nothing follows from them.
    const isStill = count(this.recent) >= this.recent.length - (this.recent.length >= WINDOW ? 1 : 0);
    const long = this.steps.slice(-2 * WINDOW);
    const isPoor = long.length === 2 * WINDOW && long.every((step) => isSilent(step) || this.isLucky(step));
    if (!isStill && !isPoor) return null;
    const recent = isStill ? this.recent : long;
    const silent = count(recent);
    const [from, to] = [recent[0]!, recent.at(-1)!].map((step) => step["training/global_step"] ?? 0);
    const where = silent === recent.length ? `steps ${from} to ${to}` : `${silent} of steps ${from} to ${to}`;
    if (this.mean("rollout/kept") === 0) return `In ${where} no conversation was left to learn from`;
    const groups = recent.every((step) => "critic/rewards/frac_zero_std" in step)
      ? ", since those of each prompt were all given the same reward"
      : "";
    const mean = this.mean(SCORE, recent).toFixed(3);
    if (2 * silent < recent.length)
      return `In steps ${from} to ${to} hardly any conversation had an advantage (mean reward ${mean})`;
    return `In ${where} no conversation had an advantage${groups} (mean reward ${mean})`;
  }

  /** True if hardly any of a step's conversations got more than the least. */
  private isLucky(step: StepMetrics): boolean {
    return (step["critic/rewards/frac_zero_std"] ?? 0) >= 0.6 && this.place(step[SCORE] ?? 0) < FEW;
  }
}

/** True if a step gave the policy nothing to learn from. */
function isSilent(step: StepMetrics): boolean {
  const highest = Math.max(Math.abs(step["critic/advantages/max"] ?? 0), Math.abs(step["critic/advantages/min"] ?? 0));
  return highest < 1e-6;
}
