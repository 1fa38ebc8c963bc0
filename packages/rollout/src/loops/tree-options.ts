/** Growth of a row's conversations as trees. */
export interface TreeOptions {
  /** Number of times that each tree grows, at least 1. */
  rounds: number;
  /** Number of conversations that a tree gains in each round, at least 1. */
  expansions: number;
}

/** Number of conversations of one tree. */
export function countLeaves({ rounds, expansions }: TreeOptions): number {
  return 1 + rounds * expansions;
}
