import type { PolicyEngine, Trajectory } from "@cria/core";
import { LlamaModel } from "@cria/engine";
import type { ClusterView, LivePhase, LiveState } from "@cria/records";
import type { StepMetrics } from "../step-metrics.js";
import { ConversationStates } from "../timing/conversation-states.js";
import { kindsOfWork, type StepTimes } from "../timing/step-times.js";

/** Seconds over which the speed is measured. */
const SPEED_SECONDS = 5;

/** Key of a validation's conversations, instead of a step. */
const VALIDATION = 0;

type Spent = LiveState["seconds"];

/** Parts of a step's wall time, by their names in metrics. */
const partsOfWall = {
  decoding: "decoding",
  waiting_for_tools: "waitingForTools",
  waiting_for_groups: "waitingForGroups",
  scoring: "scoring",
  training: "training",
  other: "other",
} as const satisfies Record<keyof StepTimes, keyof Spent>;

/** Follows a training: receives its phases and conversations, and reports the present state at any time. */
export class LiveTracker {
  private phase: LivePhase = "loading";
  private step = 0;
  private start = 0;
  private total = 0;
  private staleness = 0;
  private readonly spent: Spent = {
    decoding: 0,
    waitingForTools: 0,
    waitingForGroups: 0,
    scoring: 0,
    training: 0,
    validation: 0,
    other: 0,
  };
  /** States of the conversations of current steps; of step 0: those of a validation. */
  readonly conversations = new ConversationStates();
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
    this.conversations.onChange(() => this.addUp());
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
      for (const [name, part] of Object.entries(partsOfWall)) this.spent[part] += metrics[`timing_s/wall/${name}`] ?? 0;
      this.spent.validation += metrics["timing_s/testing"] ?? 0;
    }
  }

  enter(phase: LivePhase): void {
    this.addUp();
    if (phase === "validation" && this.phase !== "validation") this.conversations.forget((step) => step === VALIDATION);
    this.phase = phase;
  }

  /** A measured part of a step begins. */
  readonly onWork = (name: string): void => {
    const phase = kindsOfWork[name];
    if (phase && phase !== this.phase) this.enter(phase);
  };

  startStep(step: number, phase: LivePhase = "rollout"): void {
    this.began ??= this.now();
    this.step = step;
    this.enter(phase);
  }

  /** @param updates between the policy that samples the current step and the one that learns from it. */
  noteStaleness(updates: number): void {
    this.staleness = updates;
  }

  endStep(): void {
    this.done++;
  }

  /** The listener for a validation's conversations. */
  readonly onValidation = this.conversations.watch(VALIDATION);

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
      staleness: this.staleness,
      eta: this.estimateRest(at),
      cluster: this.viewCluster?.() ?? null,
    };
  }

  /** Counts of the validation during one, else of all current steps. */
  private sumConversations(): LiveState["conversations"] {
    return this.conversations.sum((step) => (step === VALIDATION) === (this.phase === "validation"));
  }

  /** Adds the time since the last change to what was done. */
  private addUp(): void {
    const now = this.now();
    const passed = Math.max(0, now - this.since) / 1000;
    this.since = now;
    this.spent[this.namePart()] += passed;
  }

  private namePart(): keyof Spent {
    if (this.phase === "rollout") return partsOfWall[this.conversations.activity(this.step)];
    return this.phase in this.spent ? (this.phase as keyof Spent) : "other";
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
