/** Greedy success by the rows' `data_source`, and the number of rows of each. */
export type Success = Record<string, { rows: number; success: number }>;

/** The 95 % confidence interval (Wilson) of a share that was found among this many rows; [0, 1] without rows. */
export function wilsonInterval(share: number, rows: number): [low: number, high: number] {
  if (rows === 0) return [0, 1];
  const z = 1.959964;
  const middle = share + z ** 2 / (2 * rows);
  const reach = z * Math.sqrt((share * (1 - share)) / rows + z ** 2 / (4 * rows ** 2));
  const scale = 1 + z ** 2 / rows;
  return [Math.max(0, (middle - reach) / scale), Math.min(1, (middle + reach) / scale)];
}

/** Success over all rows, of any `data_source`. */
export function summarize(success: Success) {
  const parts = Object.values(success);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const mean = parts.reduce((sum, part) => sum + part.rows * part.success, 0) / Math.max(1, rows);
  return { rows, success: mean, interval: wilsonInterval(mean, rows) };
}
