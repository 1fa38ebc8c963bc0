import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@cria/core";
import { Semaphore } from "@cria/rollout";
import type { Checkpoint } from "../checkpoints/checkpoint-store.js";
import type { LiveTracker } from "../live/live-tracker.js";
import type { KeptPolicy } from "../policy/policy.js";
import { countSteps } from "../step/learning-rate.js";
import { type SampledStep, sampleStep } from "../step/sample-step.js";
import { listUnderWay, listVersions, type Schedule, versionOf } from "../step/schedule.js";
import type { StepInputs, StepResult } from "../step/training-step.js";
import { Stopwatch } from "../stopwatch.js";
import type { RunState } from "./run-state.js";
import type { Training } from "./training.js";

/** A step that is sampled before its turn to be learned from. */
interface Begun {
  epoch: number;
  sampled: Promise<SampledStep>;
}

/**
 * Samples the steps of a training by its schedule: what `step` learns from, and meanwhile the steps after it, as far as `lag` says.
 * Each step's conversations are held by the version of the policy that the schedule names, whatever ends first.
 */
export class StepsAhead {
  private readonly begun = new Map<number, Begun>();
  /** By the number of updates they have seen: those that steps under way are sampled by. Without lag there are none. */
  private readonly versions = new Map<number, KeptPolicy>();
  private readonly ending = new AbortController();
  private readonly slots: Semaphore;

  constructor(
    private readonly training: Training,
    private readonly state: RunState,
    private readonly schedule: Schedule,
    private readonly live: LiveTracker | null = null,
  ) {
    this.slots = new Semaphore(training.policy.engine.info.maxSequences);
  }

  /**
   * Reads the versions that a checkpoint's steps under way are sampled by.
   * @throws DataError when the checkpoint has not all of them: it was made with a smaller lag.
   */
  async restore({ path, step }: Checkpoint): Promise<void> {
    for (const version of listVersions(step, this.schedule)) {
      const file = join(path, nameVersion(version));
      if (!existsSync(file)) {
        throw new DataError("was made with a smaller lag", {
          code: "data/checkpoint-mismatch",
          subject: path,
          expected: `the policy after ${version} steps, which samples what is learned next: ${file}`,
          received: "a checkpoint without it",
          remedy: "resume with the lag of that run (trainer.v1.*_async.num_warmup_batches), or start a new run",
        });
      }
      this.versions.set(version, await this.training.policy.keepVersion({ path: file, updates: version }));
    }
  }

  /** Writers of the versions that a checkpoint after `done` steps holds, by their names in it. */
  describe(done: number): Record<string, (path: string) => Promise<void>> {
    const versions = listVersions(done, this.schedule);
    return Object.fromEntries(versions.map((v) => [nameVersion(v), (path) => this.versions.get(v)!.save(path)]));
  }

  /** Begins all that is under way while `step` is learned from. What it gives is what the step learns from. */
  async begin(step: number): Promise<StepInputs> {
    const { schedule, live } = this;
    const watch = { onTrajectory: live?.onTrajectory, onState: live?.watchStep(step), onWork: live?.onWork };
    const replay = this.state.replayFor(step);
    if (schedule.lag === 0) return { step, ...this.state.deal(step), replay, ...watch };
    // The step is scored by the policy as it is, which may sample nothing more.
    await this.training.coordination?.publish();
    for (const next of listUnderWay(step, schedule))
      if (!this.begun.has(next)) this.begun.set(next, await this.sample(next, step - 1));
    const { epoch, sampled } = this.begun.get(step)!;
    return { step, rows: [], epoch, sampled, replay, ...watch };
  }

  /** A step was learned from: what it came to is told, and what it alone needed is freed. */
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

  /** Ends what is under way, and frees the versions. */
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
    const inputs = { ...dealt, step, version, slots, onTrajectory, onState: live?.watchStep(step) };
    const sampled = sampleStep(parts, inputs, new Stopwatch());
    // The step that learns from it reports a failure, when its turn comes.
    sampled.catch(() => undefined);
    return { epoch, sampled };
  }

  private async keep(updates: number, done: number): Promise<KeptPolicy> {
    const kept = this.versions.get(updates);
    if (kept) return kept;
    // The schedule begins a step when its version is the policy as it is, or was read from a checkpoint.
    if (updates !== done) throw new Error(`the policy after ${updates} steps was not kept`);
    const version = await this.training.policy.keepVersion({ updates });
    this.versions.set(updates, version);
    return version;
  }
}

/** The schedule that a training's settings ask for. */
export function readSchedule({ settings, trainRows }: Training): Schedule {
  return { lag: settings.lag, total: countSteps(settings, trainRows.length) };
}

/** A version's file in a checkpoint. */
const nameVersion = (updates: number) => join("actor", `version_${updates}.gguf`);
