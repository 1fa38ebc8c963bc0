import { describeCheck, formatNumber, formatRatio, type Report } from "../report.js";

export type Line = readonly string[];

/** A Markdown table with columns of one width. */
export function alignTable([head, ...lines]: readonly Line[]): string {
  const widths = head!.map((_, i) => Math.max(3, ...[head!, ...lines].map((line) => line[i]!.length)));
  const draw = (cells: Line) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [draw(head!), draw(widths.map((width) => "-".repeat(width))), ...lines.map(draw)].join("\n");
}

/**
 * A table for each metric, with a line for each case and a column for each peer: its number, and ours over it.
 * @param shows metrics that have a table: those that begin with one of these, or all.
 */
export function formatRows({ rows }: Report, shows: readonly string[] = [""]): string {
  const chosen = rows.filter(({ metric }) => shows.some((start) => metric.startsWith(start)));
  const metrics = [...new Set(chosen.map(({ metric }) => shortenMetric(metric)))];
  return metrics
    .map((metric) =>
      formatMetric(
        metric,
        chosen.filter((row) => shortenMetric(row.metric) === metric),
      ),
    )
    .join("\n\n");
}

function formatMetric(metric: string, rows: Report["rows"]): string {
  const peers = [...new Set(rows.flatMap((row) => Object.keys(row.peers)))];
  const lines = rows.map((row) => {
    const describe = (value: number, name: string) =>
      [formatNumber(value), shortenSetting(row.settings?.[name]?.used)].filter(Boolean).join(", ");
    const beside = peers.map((name) => {
      const value = row.peers[name];
      return value === undefined ? "" : `${describe(value, name)} (${formatRatio(row.ratio[name]!, "")})`;
    });
    const ours = [describe(row.ours, "ours"), ...(row.digests ?? []).map((digest) => `\`${digest}\``)].join(", ");
    return [row.case, `${ours}${formatMiss(row.target, row.met)}`, ...beside];
  });
  return alignTable([[metric, "ours", ...peers], ...lines]);
}

/** Removes the part in brackets, which belongs to one run. */
const shortenMetric = (metric: string) => metric.replace(/ \(.*\)$/, "");

/** A remark about a row's target, only if it was missed. */
function formatMiss(target: string | null, met: boolean | null): string {
  if (target === null || met) return "";
  return met === null ? ` (not judged: ${target})` : ` (**missed**: ${target})`;
}

/** "flash attention off, 2 threads" -> "fa off, 2 t". */
export function shortenSetting(used: string | undefined): string | undefined {
  return used?.replace("flash attention", "fa").replace(/ threads?$/, " t");
}

/** The measured code and machine, for the line above a table. */
export function describeProvenance({ machine, peerChecks, rows }: Report): string {
  const commits = new Map<string, number>();
  for (const { commit } of rows) commits.set(commit, (commits.get(commit) ?? 0) + 1);
  const names =
    commits.size > 1
      ? `Commits ${[...commits].map(([commit, count]) => `${commit} (${count} rows)`).join(", ")}`
      : `Commit ${[...commits.keys()].join()}`;
  const engine = `kernel ${machine.cpuKernel}, ggml ${machine.ggmlBuild}, Node ${machine.node}`;
  return [`${names}; ${engine}.`, ...peerChecks.map((check) => `${describeCheck(check)}.`)].join(" ");
}
