import { DataError } from "@cria/core";
import { type Checkpoint, CheckpointStore, readCheckpoint } from "../checkpoints/checkpoint-store.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import { StepsAhead } from "../run/steps-ahead.js";
import type { Training } from "../run/training.js";
import { runTrainingStep } from "../step/training-step.js";

/** A training of the run, and its current step. */
interface Opened {
  training: Training;
  ahead: StepsAhead;
  /** Number of steps done; null: a step was interrupted, so the state is unknown. */
  at: number | null;
}

/** A run's policy with the weights of any step: restored from the checkpoint before it, then trained up to it. */
export class RunWeights {
  readonly store: CheckpointStore;

  private constructor(
    private opened: Opened,
    /** Opens a training with the initial weights. */
    private readonly open: () => Promise<Training>,
    path: string,
    private readonly report: Report | undefined,
  ) {
    this.store = new CheckpointStore(path);
  }

  static async open(path: string, open: () => Promise<Training>, report?: Report): Promise<RunWeights> {
    return new RunWeights(begin(await open()), open, path, report);
  }

  get training(): Training {
    return this.opened.training;
  }

  /** Steps with saved weights, the newest first. */
  listSaved(): Promise<number[]> {
    return this.store.list();
  }

  /**
   * Restores the weights after a step; 0: the initial weights.
   * @returns the number of steps that were trained for this.
   * @throws the signal's reason; errors of training.
   */
  async goTo(step: number, signal?: AbortSignal): Promise<number> {
    const checkpoint = await this.findCheckpoint(step);
    const { at } = this.opened;
    const isOnTheWay = at !== null && at <= step && at >= (checkpoint?.step ?? 0);
    if (!isOnTheWay) await this.goBack(checkpoint);
    return this.train(step, signal);
  }

  async close(): Promise<void> {
    await this.opened.ahead.close();
    await this.opened.training.dispose();
  }

  /** The newest whole checkpoint at or before a step. */
  private async findCheckpoint(step: number): Promise<Checkpoint | null> {
    for (const saved of (await this.store.list()).filter((each) => each <= step)) {
      try {
        return await readCheckpoint(this.store.folderOf(saved));
      } catch (error) {
        if (!(error instanceof DataError)) throw error;
        makeSay(this.report)(`a damaged checkpoint is passed over\n  ${error.message}`);
      }
    }
    return null;
  }

  private async goBack(checkpoint: Checkpoint | null): Promise<void> {
    await this.opened.ahead.close();
    if (!checkpoint) {
      await this.opened.training.dispose();
      this.opened = begin(await this.open());
      return;
    }
    const { training } = this.opened;
    this.opened = { ...begin(training), at: null };
    await this.opened.ahead.restore(checkpoint);
    await training.policy.engine.flushCache();
    this.opened.at = checkpoint.step;
  }

  private async train(last: number, signal: AbortSignal | undefined): Promise<number> {
    const { opened } = this;
    const first = opened.at!;
    if (first === last) return 0;
    const count = last - first;
    const from = first === 0 ? "the start" : `the weights after step ${first}`;
    const what = count === 1 ? `step ${last}` : `steps ${first + 1} to ${last}`;
    makeSay(this.report)(`training ${what} again, from ${from}`);
    const reporter = new WorkReporter(this.report, "replay");
    reporter.update(0, count);
    try {
      for (let step = first + 1; step <= last; step++) {
        signal?.throwIfAborted();
        opened.at = null;
        const result = await runTrainingStep({ ...opened.training, signal }, await opened.ahead.begin(step));
        await opened.ahead.end(step, result);
        opened.ahead.mark(step);
        opened.at = step;
        reporter.update(step - first, count);
      }
    } finally {
      reporter.end();
    }
    return count;
  }
}

function begin(training: Training): Opened {
  return { training, ahead: new StepsAhead(training), at: 0 };
}
