/** A conversation of a validation, as trackers show it. */
export interface Generation {
  /** The prompt as the model saw it. */
  input: string;
  /** Everything after it: sampled text, tools, users. */
  output: string;
  /** reward_model.ground_truth of its row. */
  groundTruth: unknown;
  score: number;
}

/** One cell's text: strings as they are. */
export function formatGroundTruth({ groundTruth }: Generation): string {
  return typeof groundTruth === "string" ? groundTruth : (JSON.stringify(groundTruth) ?? "");
}

/** Metrics have arrived, generations have not: nothing else of the tracker needs to stop. */
export class GenerationsError extends Error {
  constructor(cause: unknown) {
    super(`validation generations: ${(cause as Error).message}`, { cause });
  }
}
