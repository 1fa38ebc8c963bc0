import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@cria/core";
import { Semaphore } from "@cria/rollout";
import type { Checkpoint } from "../checkpoints/checkpoint-store.js";
import type { RunJournal } from "../journal/run-journal.js";
import type { LiveTracker } from "../live/live-tracker.js";
import { listPolicies, nameForRole } from "../policy/of-role.js";
import type { KeptPolicy } from "../policy/policy.js";
import type { SampledStep } from "../step/collect-rollouts.js";
import { countSteps } from "../step/learning-rate.js";
import { type SampleInputs, sampleStep } from "../step/sample-step.js";
import { listUnderWay, listVersions, type Schedule, stalenessOf, versionOf } from "../step/schedule.js";
import type { StepInputs, StepResult } from "../step/training-step.js";
import type { StepMetrics } from "../step-metrics.js";
import { ConversationStates } from "../timing/conversation-states.js";
import { Stopwatch } from "../timing/stopwatch.js";
import { type RunPlace, RunState } from "./run-state.js";
import type { StepState } from "./steps.js";
import type { Training } from "./training.js";

/** A step that is sampled before it is learned from. */
interface Begun {
  epoch: number;
  sampled: Promise<SampledStep>;
}

/**
 * Samples the steps of a training by its schedule: the current step, and meanwhile up to `lag` steps after it. The
 * schedule determines the policy version that samples each step, whatever finishes first.
 */
export class StepsAhead {
  private readonly begun = new Map<number, Begun>();
  /** Versions that sample the running steps, by their number of updates. Empty without lag. */
  private readonly versions = new Map<number, KeptPolicy>();
  private readonly ending = new AbortController();
  private readonly slots: Semaphore;
  private readonly state: RunState;
  private readonly schedule: Schedule;
  private readonly conversations: ConversationStates;

  /** @param live is told of the steps' conversations; null: nobody is. */
  constructor(
    private readonly training: Training,
    private readonly live: LiveTracker | null = null,
    private readonly journal: RunJournal | null = null,
  ) {
    const { settings, trainRows, policy } = training;
    this.slots = new Semaphore(policy.engine.info.maxSequences);
    this.state = new RunState(training);
    this.schedule = { lag: settings.lag, total: countSteps(settings, trainRows.length) };
    this.conversations = live?.conversations ?? new ConversationStates();
  }

  /** Number of steps of the training. */
  get total(): number {
    return this.schedule.total;
  }

  /** True if the newest version samples each next turn, whichever version began the conversation. */
  private get switches(): boolean {
    return this.training.settings.partialRollout !== "carry_on";
  }

  /**
   * Restores the state of a checkpoint, with the versions that sample its running steps.
   * @returns the metrics of its step if the validation after it was interrupted.
   * @throws DataError or EngineError; DataError when versions are missing, because the checkpoint was made with a
   * smaller lag.
   */
  async restore(checkpoint: Checkpoint): Promise<StepMetrics | undefined> {
    const unvalidated = await this.state.restore(checkpoint);
    const { path, step } = checkpoint;
    const { policy } = this.training;
    for (const version of listVersions(step, this.schedule)) {
      const file = join(path, nameVersion(version));
      if (!listPolicies(policy).every(([role]) => existsSync(nameForRole(file, role)))) {
        throw new DataError("was made with a smaller lag", {
          code: "data/checkpoint-mismatch",
          subject: path,
          expected: `the policy after ${version} steps, which samples what is learned next: ${file}`,
          received: "a checkpoint without it",
          remedy: "resume with the lag of that run (trainer.v1.*_async.num_warmup_batches), or start a new run",
        });
      }
      this.versions.set(version, await policy.keepVersion({ path: file, updates: version }));
    }
    return unvalidated;
  }

  /** Returns the state after `step` steps, of which the last was just finished. */
  mark(step: number): RunPlace {
    return this.state.mark(step);
  }

  /** Describes the parts of a checkpoint, made at a place of this training. */
  describe(place: RunPlace): StepState {
    const { files, ...described } = this.state.describe(place);
    const versions = listVersions(place.step, this.schedule).flatMap((v) =>
      listPolicies(this.versions.get(v)!).map(
        ([role, version]) => [nameForRole(nameVersion(v), role), (path: string) => version.save(path)] as const,
      ),
    );
    return { ...described, files: { ...files, ...Object.fromEntries(versions) } };
  }

  /** Starts all steps that run while `step` is learned from. Returns the inputs of `step`. */
  async begin(step: number): Promise<StepInputs> {
    const { schedule, live, conversations } = this;
    conversations.forget((other) => other < step);
    live?.noteStaleness(stalenessOf(step, schedule));
    const onState = conversations.watch(step);
    const watch = { onTrajectory: live?.onTrajectory, onState, onWork: live?.onWork, conversations };
    const journals = this.openJournals(step);
    const replay = this.state.replayFor(step);
    if (schedule.lag === 0) return { step, ...this.state.deal(step), replay, journals, ...watch };
    // The step is scored by the current policy, which may not sample any more steps.
    await this.training.coordination?.publish();
    // It takes over conversations of steps that were started earlier.
    if (this.switches) await this.keep(step - 1, step - 1);
    for (const next of listUnderWay(step, schedule))
      if (!this.begun.has(next)) this.begun.set(next, await this.sample(next, step - 1));
    const { epoch, sampled } = this.begun.get(step)!;
    return { step, rows: [], epoch, sampled, replay, ...watch };
  }

  /** Passes on the result of a finished step, and frees versions that no later step needs. */
  async end(step: number, result: StepResult): Promise<void> {
    this.state.learn(step, result);
    this.begun.delete(step);
    const oldest = versionOf(step + 1, this.schedule);
    for (const [updates, version] of this.versions) {
      if (updates >= oldest) continue;
      this.versions.delete(updates);
      await version.dispose();
    }
  }

  /** Aborts running steps, and frees the versions. */
  async close(): Promise<void> {
    this.ending.abort(new Error("the training has ended"));
    await Promise.allSettled([...this.begun.values()].map(({ sampled }) => sampled));
    await Promise.allSettled([...this.versions.values()].map((version) => version.dispose()));
  }

  private async sample(step: number, done: number): Promise<Begun> {
    const { training, slots, live } = this;
    const version = await this.keep(versionOf(step, this.schedule), done);
    const signals = [this.ending.signal, ...(training.signal ? [training.signal] : [])];
    const parts = { ...training, signal: AbortSignal.any(signals) };
    const { epoch, ...dealt } = this.state.deal(step);
    const onTrajectory = live?.onTrajectory;
    const journals = this.openJournals(step);
    const newest = this.switches ? () => this.findNewest() : undefined;
    const watch = { onTrajectory, onState: this.conversations.watch(step) };
    const inputs = { ...dealt, step, version, newest, slots, journals, ...watch };
    const sampled = sampleStep(parts, inputs, new Stopwatch());
    // The error is reported when the step's turn to be learned from comes.
    sampled.catch(() => undefined);
    return { epoch, sampled };
  }

  private openJournals(step: number): SampleInputs["journals"] {
    const { journal } = this;
    return journal ? { sampled: journal.at(step, "sampled"), greedy: journal.at(step, "greedy") } : undefined;
  }

  private findNewest(): KeptPolicy {
    return this.versions.get(Math.max(...this.versions.keys()))!;
  }

  private async keep(updates: number, done: number): Promise<KeptPolicy> {
    const kept = this.versions.get(updates);
    if (kept) return kept;
    // A step starts when its version is the current policy, or was loaded from a checkpoint.
    if (updates !== done) throw new Error(`the policy after ${updates} steps was not kept`);
    const version = await this.training.policy.keepVersion({ updates });
    this.versions.set(updates, version);
    return version;
  }
}

/** Name of a version's file in a checkpoint. */
const nameVersion = (updates: number) => join("actor", `version_${updates}.gguf`);
