/** One number of ours beside the same number of each peer. */
export interface Row {
  case: string;
  /** What is measured, with its unit. */
  metric: string;
  ours: number;
  peers: Record<string, number>;
  /** What counts as reached, in words; null when the row only informs. */
  target: string | null;
  /** Whether it was reached; null without a target. */
  met: boolean | null;
}
