import type { Row } from "../row.js";

/** Share of the kept ratio that must be left. */
export const LEAST = 0.9;

/** Rows that are the better the larger they are, each with a target from the kept row of its case and metric. */
export function judgeRows(rows: readonly Row[], kept: readonly Row[]): Row[] {
  return rows.map((row) => {
    const before = kept.find((other) => other.case === row.case && other.metric === row.metric);
    const [peer] = Object.keys(row.peers).filter((name) => !row.crippled?.[name] && !before?.crippled?.[name]);
    const then = before && peer !== undefined ? before.ours / before.peers[peer]! : Number.NaN;
    if (Number.isNaN(then)) return { ...row, target: null, met: null };
    const least = LEAST * then;
    return {
      ...row,
      target: `at least ${least.toPrecision(3)} times ${peer}'s, of ${then.toPrecision(3)} that are kept`,
      met: row.ours >= least * row.peers[peer!]!,
    };
  });
}
