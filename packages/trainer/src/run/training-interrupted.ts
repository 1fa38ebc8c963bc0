export interface InterruptedTraining {
  /** Steps done, and how many were asked for. */
  step: number;
  total: number;
  /** What to go on from; null: nothing is saved. */
  checkpoint: string | null;
  /** What was under way and has to be done again; null: nothing. */
  lost: string | null;
}

/** Training was ended from outside. What was finished is saved, where the run keeps checkpoints. */
export class TrainingInterrupted extends Error {
  constructor(
    readonly training: InterruptedTraining,
    options?: ErrorOptions,
  ) {
    const { step, total, checkpoint, lost } = training;
    const why = step === 0 ? "no step was finished" : "this run keeps no checkpoints";
    const lines = [
      `training stopped after step ${step} of ${total}`,
      `  saved: ${checkpoint ?? `nothing, for ${why}`}`,
      `  lost: ${lost ?? "nothing"}`,
    ];
    super(lines.join("\n"), options);
    this.name = "TrainingInterrupted";
  }
}
