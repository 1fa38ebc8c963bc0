import { dirname, resolve } from "node:path";
import type { Checkpoint, CheckpointStore, PendingCheckpoint, TrainingState } from "./checkpoint-store.js";

/** Maximum share of a run's time for saving by the clock. */
const MOST_TIME_SAVING = 0.05;

export interface SavePointOptions {
  /** Steps between checkpoints that are kept; at most 0: only the last is kept. */
  saveFreq: number;
  /** Minutes between interim checkpoints; 0: none. */
  saveMinutes: number;
  total: number;
  /** Left out: only weights are written. */
  checkpoints?: CheckpointStore;
  resume?: Checkpoint | null;
  saveWeights: () => Promise<unknown>;
  /** Called after each committed checkpoint; the run waits for it. */
  share?: (step: number) => Promise<void>;
  /** Called once a checkpoint is committed and shared: what it holds need not be kept elsewhere. */
  onSaved?: (step: number) => Promise<void> | undefined;
}

/** Decides after which steps a run is saved, and saves it: weights for use, and the state to resume from. */
export class SavePoints {
  private savedAt = performance.now();
  private secondsOfLast = 0;
  /** Step of this run's newest checkpoint. */
  private newest: number | null;

  constructor(private readonly options: SavePointOptions) {
    const { checkpoints, resume } = options;
    const isOwn = checkpoints && resume && resolve(dirname(resume.path)) === resolve(checkpoints.path);
    this.newest = isOwn ? resume.step : null;
  }

  /** "kept": due by save_freq, or at the end; "interim": due by save_minutes; null: not due. */
  isDue(step: number): "kept" | "interim" | null {
    const { total, saveFreq, saveMinutes, checkpoints } = this.options;
    if (step === total || (saveFreq > 0 && step % saveFreq === 0)) return "kept";
    if (saveMinutes <= 0 || !checkpoints) return null;
    const wait = Math.max(60 * saveMinutes, this.secondsOfLast / MOST_TIME_SAVING);
    return performance.now() - this.savedAt >= 1000 * wait ? "interim" : null;
  }

  /** Writes everything; the checkpoint gets its name when it is committed. */
  async prepare(state: TrainingState, kind: "kept" | "interim"): Promise<PendingCheckpoint | undefined> {
    const started = performance.now();
    await this.options.saveWeights();
    const pending = await this.options.checkpoints?.prepare({ ...state, interim: kind === "interim" });
    this.savedAt = performance.now();
    this.secondsOfLast = (this.savedAt - started) / 1000;
    return (
      pending && {
        commit: async () => {
          await pending.commit();
          this.newest = state.step;
          const committed = performance.now();
          await this.options.share?.(state.step);
          await this.options.onSaved?.(state.step);
          this.secondsOfLast += (performance.now() - committed) / 1000;
        },
        discard: pending.discard,
      }
    );
  }

  /**
   * Saves a run that ends early, unless its step is saved already.
   * @returns the checkpoint; null if there is none to resume from.
   */
  async saveLast(state: TrainingState): Promise<string | null> {
    const { checkpoints } = this.options;
    if (!checkpoints || state.step === 0) return null;
    if (this.newest !== state.step) await (await this.prepare(state, this.isDue(state.step) ?? "interim"))?.commit();
    return checkpoints.folderOf(state.step);
  }
}
