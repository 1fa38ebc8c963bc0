import { agentLoops as builtInLoops, type DatasetRow, loopCounters } from "@cria/rollout";
import { loopMeasures, selectInteraction, selectTools } from "@cria/rollout/internal";
import type { CoordinatedRun, Report } from "@cria/trainer";
import { OTHER_CLASS } from "@cria/trainer/internal";

type Metrics = Record<string, number>;

/** Most metric names that workers may add to a run, besides those of the loops. */
const MOST_NAMES = 1000;
/**
 * Text without control characters; no part of it between slashes is empty, `.` or `..`: trackers may make paths of it.
 */
const SAFE = /^(?!(?:.*\/)?\.{0,2}(?:\/|$))[^\p{Cc}\\]{1,200}$/u;
/** Metrics that loops count for a conversation. */
const COUNTED = new Set<string>([...loopCounters, ...loopMeasures, "failed"]);
/** Metrics of a conversation that only the coordinator sets. */
const OWN = new Set([OTHER_CLASS, "reward_failed", "refilled"]);

/**
 * Keeps those of workers' metrics that this process could have counted itself, and a bounded number of names that only
 * the workers' code knows.
 */
export class WorkerMetrics {
  private readonly known = new Set<string>();
  private isTold = false;

  constructor(
    private readonly environment: CoordinatedRun["environment"],
    private readonly report: Report | undefined,
  ) {}

  ofConversation(metrics: Metrics, row: DatasetRow): Metrics {
    const { agentLoops: loops = builtInLoops, defaultAgentLoop, tools, interactions } = this.environment;
    // Only the user's loops and agents know the names of their metrics.
    if (loops.get(row.agentName ?? defaultAgentLoop).recorded !== "answers")
      return this.take(metrics, (name) => !OWN.has(name) && (COUNTED.has(name) || this.isNew(name)));
    const interaction = selectInteraction(interactions ?? null, row)?.name;
    const fixed = new Set(COUNTED);
    const prefixes: string[] = [];
    for (const tool of selectTools(tools, row)) {
      for (const what of ["tool_errors", "tool_s", "tool_answers"]) fixed.add(`${what}/${tool}`);
      prefixes.push(`tool/${tool}/`);
    }
    if (interaction !== undefined) {
      fixed.add(`interaction_answers/${interaction}`);
      prefixes.push(`interaction/${interaction}/`);
    }
    const isAnswer = (name: string) => prefixes.some((prefix) => name.startsWith(prefix) && name !== prefix);
    return this.take(metrics, (name) => fixed.has(name) || (isAnswer(name) && this.isNew(name)));
  }

  /** Metrics of a loss, whose names only its code knows. */
  ofGradient(metrics: Metrics): Metrics {
    return this.take(metrics, (name) => this.isNew(name));
  }

  private isNew(name: string): boolean {
    if (this.known.has(name)) return true;
    if (!SAFE.test(name) || this.known.size >= MOST_NAMES) return false;
    this.known.add(name);
    return true;
  }

  private take(metrics: Metrics, isOurs: (name: string) => boolean): Metrics {
    const taken = Object.entries(metrics).filter(([name]) => isOurs(name));
    const left = Object.keys(metrics).filter((name) => !isOurs(name));
    if (left.length > 0 && !this.isTold) {
      this.isTold = true;
      const names = left.slice(0, 5).map((name) => JSON.stringify(name.slice(0, 100)));
      const text = `some metrics of workers are ignored: no loop, tool or loss here has them, or there are more than ${MOST_NAMES}: ${names.join(", ")}`;
      this.report?.({ type: "warning", text });
    }
    return Object.fromEntries(taken);
  }
}
