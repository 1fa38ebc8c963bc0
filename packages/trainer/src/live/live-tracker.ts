import type { PolicyEngine, RequestState, Trajectory } from "@cria/core";
import { LlamaModel } from "@cria/engine";
import type { StepMetrics } from "../step-metrics.js";
import type { ClusterView } from "./cluster-view.js";
import type { LivePhase, LiveState } from "./live-state.js";

/** Seconds over which the speed is measured. */
const SPEED_SECONDS = 5;

/** Phase of each measured part of a step. */
const phases: Record<string, LivePhase> = {
  gen: "rollout",
  reward: "scoring",
  old_log_prob: "scoring",
  ref: "scoring",
  values: "scoring",
  adv: "training",
  update_critic: "training",
  update_actor: "training",
  update_kl: "scoring",
};

/** Key of a validation's conversations, instead of a step. */
const VALIDATION = 0;

type Spent = LiveState["seconds"];

/** Follows a training: receives its phases and conversations, and reports the present state at any time. */
export class LiveTracker {
  private phase: LivePhase = "loading";
  private step = 0;
  private start = 0;
  private total = 0;
  private readonly spent: Spent = { rollout: 0, scoring: 0, training: 0, validation: 0, other: 0 };
  private allWaiting = 0;
  /** Counts by step, only for current steps; 0: those of a validation. */
  private readonly conversations = new Map<number, LiveState["conversations"]>();
  /** Time when seconds were last added up. */
  private since: number;
  /** Start of this process's first step, and the number of steps done since. */
  private began: number | null = null;
  private done = 0;
  private samples: { at: number; tokens: number }[] = [];
  /** Tokens reported to it, for engines that do not count. */
  private told = 0;

  /**
   * @param engine counts sampled tokens; null: nothing is sampled, and `addTokens` reports trained tokens.
   * @param now milliseconds since 1970.
   */
  constructor(
    private readonly engine: PolicyEngine | null,
    private readonly now: () => number = Date.now,
    /** Returns the state of the machines that share the work; left out: there is only one. */
    private readonly viewCluster?: () => ClusterView,
  ) {
    this.since = now();
  }

  /** @param start steps done by an earlier process. */
  begin(start: number, total: number): void {
    this.step = start;
    this.start = start;
    this.total = total;
  }

  /** Adds the seconds of an earlier process of the run, by its metrics. */
  restore(history: readonly StepMetrics[]): void {
    for (const metrics of history) {
      for (const [name, phase] of Object.entries(phases))
        this.spent[phase as keyof Spent] += metrics[`timing_s/${name}`] ?? 0;
      this.spent.validation += metrics["timing_s/testing"] ?? 0;
    }
  }

  enter(phase: LivePhase): void {
    this.addUp();
    if (phase === "validation" && this.phase !== "validation") this.conversations.delete(VALIDATION);
    this.phase = phase;
  }

  /** A measured part of a step begins. */
  readonly onWork = (name: string): void => {
    const phase = phases[name];
    if (phase && phase !== this.phase) this.enter(phase);
  };

  startStep(step: number, phase: LivePhase = "rollout"): void {
    this.began ??= this.now();
    this.step = step;
    this.enter(phase);
    for (const other of this.conversations.keys()) if (other < step) this.conversations.delete(other);
  }

  endStep(): void {
    this.done++;
  }

  /** @returns a listener for state changes of the step's conversations; `before` is null for a new conversation. */
  watchStep(step: number): (state: RequestState, before: RequestState | null) => void {
    return (state, before) => {
      this.addUp();
      const counts = this.conversations.get(step) ?? { done: 0, generating: 0, waitingForTools: 0, total: 0 };
      this.conversations.set(step, counts);
      count(counts, before, -1);
      count(counts, state, 1);
      if (before === null) counts.total++;
    };
  }

  /** The listener for a validation's conversations. */
  readonly onValidation = this.watchStep(VALIDATION);

  /** Called when a conversation has ended. */
  readonly onTrajectory = ({ metrics }: Pick<Trajectory, "metrics">): void => {
    this.addTokens(metrics.decode_tokens ?? 0);
  };

  addTokens(tokens: number): void {
    this.told += tokens;
  }

  state(): LiveState {
    this.addUp();
    const at = this.now();
    return {
      at,
      process: process.pid,
      step: this.step,
      total: this.total,
      phase: this.phase,
      conversations: this.sumConversations(),
      tokensPerSecond: this.measureSpeed(at),
      seconds: { ...this.spent },
      waitingForTools: this.allWaiting,
      eta: this.estimateRest(at),
      cluster: this.viewCluster?.() ?? null,
    };
  }

  /** Counts of the validation during one, else of all current steps. */
  private sumConversations(): LiveState["conversations"] {
    const sum = { done: 0, generating: 0, waitingForTools: 0, total: 0 };
    for (const [step, counts] of this.conversations) {
      if ((step === VALIDATION) !== (this.phase === "validation")) continue;
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += counts[name];
    }
    return sum;
  }

  /** Adds the time since the last change to the current phase. */
  private addUp(): void {
    const now = this.now();
    const passed = Math.max(0, now - this.since) / 1000;
    this.since = now;
    const { generating, waitingForTools } = this.sumConversations();
    const isRolling = this.phase === "rollout" || this.phase === "validation";
    if (isRolling && generating === 0 && waitingForTools > 0) this.allWaiting += passed;
    const name = this.phase in this.spent ? (this.phase as keyof Spent) : "other";
    this.spent[name] += passed;
  }

  private measureSpeed(at: number): number {
    const tokens = this.engine instanceof LlamaModel ? this.engine.schedulerStats().decodeTokens : this.told;
    this.samples.push({ at, tokens });
    this.samples = this.samples.filter((sample) => at - sample.at <= 1000 * SPEED_SECONDS);
    const first = this.samples[0]!;
    return at > first.at ? (1000 * (tokens - first.tokens)) / (at - first.at) : 0;
  }

  private estimateRest(at: number): number | null {
    if (this.began === null || this.done === 0) return null;
    const each = (at - this.began) / 1000 / this.done;
    return Math.max(0, each * (this.total - this.start - this.done));
  }
}

function count(counts: LiveState["conversations"], state: RequestState | null, change: 1 | -1): void {
  const add = (name: keyof typeof counts) => {
    counts[name] = Math.max(0, counts[name] + change);
  };
  if (state === "running") add("generating");
  else if (state === "tool_calling" || state === "interacting") add("waitingForTools");
  else if (state === "completed" || state === "failed") add("done");
}
