import { hashSeed } from "@cria/core";
import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import { type Checkpoint, restoreEngines, type Unvalidated } from "../checkpoints/checkpoint-store.js";
import type { Session } from "./session.js";

/** A checkpoint's data.json. */
interface RunStateData extends Unvalidated {
  loader: DataLoaderState;
  kl_controller: { coefficient: number };
}

/** What changes from step to step beside the engines. */
export interface RunPlace {
  /** Steps done. */
  step: number;
  loader: DataLoaderPlace;
  klController: { coefficient: number };
}

/** Rows of a step. */
export interface DealtRows {
  rows: DatasetRow[];
  /** From 0. */
  epoch: number;
  /** Hands out fresh prompts for the same step; none when every row had its turn. */
  nextRows: () => DatasetRow[];
}

/** All of a training that changes from step to step: what a checkpoint holds. */
export class RunState {
  private readonly loader: DataLoader<DatasetRow>;
  /** The loader's place after the rows of steps that were dealt, and are not done. */
  private readonly places = new Map<number, DataLoaderPlace>();

  constructor(private readonly session: Session) {
    const { data } = session.settings;
    this.loader = new DataLoader(session.trainRows, {
      batchSize: Math.min(data.batchSize, session.trainRows.length),
      shuffle: data.shuffle,
      seed: data.seed,
    });
  }

  /**
   * Goes to where a checkpoint was made.
   * @returns the metrics of its step where the validation after it was interrupted.
   * @throws DataError or EngineError
   */
  async restore(checkpoint: Checkpoint): Promise<Unvalidated["unvalidated"]> {
    const data = checkpoint.data as RunStateData | null;
    if (!data) return undefined;
    this.loader.restore(data.loader);
    this.session.klController.restore(data.kl_controller);
    await restoreEngines(checkpoint, listEngines(this.session));
    return data.unvalidated;
  }

  /** Rows of a step: steps are dealt in their order, ahead of being learned from where the training has a lag. */
  deal(step: number): DealtRows {
    const { loader } = this;
    const rows = loader.next();
    const place = () => this.places.set(step, loader.place);
    place();
    if (this.session.settings.lag > 0) return { rows, epoch: loader.epoch, nextRows: this.refill(step, rows) };
    const nextRows = () => {
      const fresh = loader.next();
      place();
      return fresh;
    };
    return { rows, epoch: loader.epoch, nextRows };
  }

  /** Other rows for a step, in an order of its own: what other steps are given does not depend on how many it takes. */
  private refill(step: number, dealt: readonly DatasetRow[]): () => DatasetRow[] {
    const { trainRows, settings } = this.session;
    const taken = new Set(dealt.map(({ uid }) => uid));
    const rows = trainRows.filter(({ uid }) => !taken.has(uid));
    const { batchSize, seed } = settings.data;
    const size = Math.min(batchSize, rows.length);
    const stream = new DataLoader(rows, { batchSize: size, shuffle: true, seed: hashSeed(seed, "refill", step) });
    let left = Math.ceil(rows.length / Math.max(1, size));
    return () => (left-- > 0 ? stream.next() : []);
  }

  /** The place when `step` steps are done, the last one just now. */
  mark(step: number): RunPlace {
    const loader = this.places.get(step) ?? this.loader.place;
    for (const done of this.places.keys()) if (done <= step) this.places.delete(done);
    return { step, loader, klController: this.session.klController.save() };
  }

  /** The parts of a checkpoint, made at a place of this training. */
  describe({ step, loader, klController }: RunPlace) {
    const { settings } = this.session;
    const data: RunStateData = { loader: this.loader.save(loader), kl_controller: klController };
    return {
      engines: listEngines(this.session),
      data,
      // No generator runs through a training: every draw is made from a hash of seed, step, row and sample.
      rng: { rollout_seed: settings.seed, data_seed: settings.data.seed, step },
    };
  }
}

/** The engines of a session whose state a checkpoint holds, by name. */
export function listEngines(session: Session): Record<string, object> {
  return { actor: session.policy.engine, ...(session.critic ? { critic: session.critic.engine } : {}) };
}
