import { hasFailed, hashSeed, type Trajectory } from "@cria/core";
import type { PickRequest, RowSampler, StepOutcome } from "@cria/rollout";
import { hashUids, pickRows } from "@cria/rollout/internal";
import { copyPlain } from "../checkpoints/plain-state.js";
import { measureSuccess } from "../rewards/measure-success.js";
import { countSteps } from "../step/learning-rate.js";
import type { StepResult } from "../step/training-step.js";
import { type DealtRows, type RowOrder, refuseOrder } from "./row-order.js";
import type { Training } from "./training.js";

/** The sampler's state after it picked the rows of a step. */
interface SamplerPlace {
  /** Number of steps whose outcomes it has received. */
  told: number;
  state: unknown;
}

/** A checkpoint's data about a sampler. */
interface SamplerState extends SamplerPlace {
  name: string;
  batchSize: number;
  seed: number;
  rows: number;
  uids: string;
  /** Outcomes of finished steps that the sampler has not received yet. */
  outcomes: StepOutcome[];
}

/**
 * Rows picked by a sampler (`data.sampler`). Before it picks the rows of step k, it receives the outcomes of exactly
 * the steps up to k - 1 - lag. So its knowledge follows from the schedule, however early a step is dealt.
 */
export class SampledOrder implements RowOrder {
  private readonly sampler: RowSampler;
  /** By step: the place after its rows were picked, until the step is finished. */
  private readonly places = new Map<number, SamplerPlace>();
  /** By step: outcomes that the sampler had not received at the place of the last checkpoint. */
  private readonly outcomes = new Map<number, StepOutcome>();
  private readonly indices: ReadonlyMap<string, number>;
  private told = 0;
  private done: SamplerPlace;

  constructor(
    private readonly training: Training,
    private readonly given: NonNullable<Training["rowSampler"]>,
  ) {
    const { trainRows, settings } = training;
    this.sampler = given.make({ batchSize: this.batchSize, seed: settings.data.seed });
    this.indices = new Map(trainRows.map(({ uid }, index) => [uid, index]));
    this.done = this.here();
  }

  private get batchSize(): number {
    const { trainRows, settings } = this.training;
    return Math.min(settings.data.batchSize, trainRows.length);
  }

  deal(step: number): DealtRows {
    const { trainRows, settings } = this.training;
    const { batchSize: count } = this;
    while (this.told < step - 1 - settings.lag) {
      this.told++;
      this.sampler.update?.(this.outcomes.get(this.told)!);
    }
    const most = settings.algorithm.filterGroups?.maxNumGenBatches;
    const others = trainRows.length - count;
    const spare = most === undefined ? 0 : most === 0 ? others : Math.min(others, (most - 1) * count);
    const samples = settings.sampling.n;
    const request: PickRequest = { step, count, spare, samples, seed: hashSeed(settings.data.seed, "sampler", step) };
    const picked = pickRows(this.sampler, request, trainRows.length, this.given.name);
    this.places.set(step, this.here());
    const rows = picked.map((entry) =>
      typeof entry === "number" ? trainRows[entry]! : { ...trainRows[entry.row]!, samples: entry.samples },
    );
    let next = 0;
    return {
      rows: rows.slice(0, count),
      epoch: Math.floor((step - 1) / countSteps({ ...settings, steps: null, epochs: 1 }, trainRows.length)),
      nextRows: () => {
        next += count;
        return rows.slice(next, next + count);
      },
    };
  }

  learn(step: number, { trajectories, leftOut }: Pick<StepResult, "trajectories" | "leftOut">): void {
    const groups = new Map<number, Trajectory[]>();
    for (const trajectory of [...trajectories, ...leftOut]) {
      const index = this.indices.get(trajectory.uid)!;
      groups.set(index, [...(groups.get(index) ?? []), trajectory]);
    }
    const rows = [...groups].map(([row, group]) => ({ row, ...describeGroup(group) }));
    this.outcomes.set(step, { step, rows });
  }

  mark(step: number): () => { sampler: SamplerState } {
    this.done = this.places.get(step) ?? this.done;
    const { told } = this.done;
    for (const at of this.places.keys()) if (at <= step) this.places.delete(at);
    for (const at of this.outcomes.keys()) if (at <= told) this.outcomes.delete(at);
    const place = this.done;
    const outcomes = [...this.outcomes.values()];
    return () => ({ sampler: { ...this.describe(), ...place, outcomes } });
  }

  restore({ sampler: saved }: { sampler?: SamplerState }): void {
    if (!saved) throw refuseOrder(`rows by ${this.given.name}`, "passes over the rows (no data.sampler)");
    for (const [name, value] of Object.entries(this.describe())) {
      const before = saved[name as keyof SamplerState];
      if (before !== value) throw refuseOrder(`${name} ${value}`, `${name} ${before}`);
    }
    const { told, state, outcomes } = saved;
    this.told = told;
    if (this.sampler.restore) this.sampler.restore(structuredClone(state));
    for (const outcome of outcomes) this.outcomes.set(outcome.step, outcome);
    this.done = { told, state };
  }

  /** The sampler's current place. */
  private here(): SamplerPlace {
    return { told: this.told, state: copyPlain(this.sampler.save?.() ?? null, this.given.name) };
  }

  private describe() {
    const { trainRows, settings } = this.training;
    return {
      name: this.given.name,
      batchSize: this.batchSize,
      seed: settings.data.seed,
      rows: trainRows.length,
      uids: hashUids(trainRows),
    };
  }
}

function describeGroup(group: readonly Trajectory[]): { rewards: number[]; success: number | null } {
  const whole = group.filter((trajectory) => !hasFailed(trajectory));
  return { rewards: whole.map(({ reward }) => reward), success: measureSuccess(whole) };
}
