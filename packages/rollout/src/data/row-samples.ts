/** A row, as far as its number of conversations goes. */
type Sampled = { samples?: number };

/** Most conversations that a row may ask for. */
export const MOST_SAMPLES = 4096;

export function isSampleCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_SAMPLES;
}

/** Conversations of a row: as many as it asks for itself, else `n`, which its run says. */
export function samplesOf({ samples }: Sampled, n: number): number {
  return samples ?? n;
}

/** Conversations of all rows, where the run says `n`. */
export function countConversations(rows: readonly Sampled[], n: number): number {
  return rows.reduce((sum, row) => sum + samplesOf(row, n), 0);
}

/** The rows for work on one conversation of each, however many they ask for. */
export function sampleOnce<Row extends Sampled>(rows: readonly Row[]): Row[] {
  return rows.map((row) => ({ ...row, samples: 1 }));
}
