/** A conversation of a validation, for trackers. */
export interface Generation {
  /** The prompt as the model saw it. */
  input: string;
  /** Everything after the prompt: sampled text, tools, users. */
  output: string;
  /** The row's reward_model.ground_truth. */
  groundTruth: unknown;
  score: number;
}

/** The ground truth as text for a cell: strings unchanged. */
export function formatGroundTruth({ groundTruth }: Generation): string {
  return typeof groundTruth === "string" ? groundTruth : (JSON.stringify(groundTruth) ?? "");
}

/** Metrics were received, generations were not: the rest of the tracker can continue. */
export class GenerationsError extends Error {
  constructor(cause: unknown) {
    super(`validation generations: ${(cause as Error).message}`, { cause });
  }
}
