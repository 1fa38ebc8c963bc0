import { describeCheck, formatNumber, formatRatio, type Report } from "../report.js";

export type Line = readonly string[];

/** A Markdown table with columns of one width. */
export function alignTable([head, ...lines]: readonly Line[]): string {
  const widths = head!.map((_, i) => Math.max(3, ...[head!, ...lines].map((line) => line[i]!.length)));
  const draw = (cells: Line) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [draw(head!), draw(widths.map((width) => "-".repeat(width))), ...lines.map(draw)].join("\n");
}

/** A line for each row; the ratio is ours over the peer's. */
export function formatRows({ rows }: Report): string {
  const lines = rows.map(({ case: title, metric, ours, peers, settings, ratio, target, met }) => {
    const beside = Object.keys(peers).map((name) => {
      const value = [formatNumber(peers[name]!), shortenSetting(settings?.[name]?.used)].filter(Boolean).join(", ");
      return `${name}: ${value} (${formatRatio(ratio[name]!, "ratio ")})`;
    });
    const mine = [formatNumber(ours), shortenSetting(settings?.ours?.used)].filter(Boolean).join(", ");
    return [title, metric, mine, beside.join("<br>"), formatTarget(target, met)];
  });
  return alignTable([["case", "metric", "ours", "peers (ours / theirs)", "target"], ...lines]);
}

export function formatTarget(target: string | null, met: boolean | null): string {
  if (target === null) return "";
  return `${met === null ? "not judged" : met ? "met" : "**missed**"}: ${target}`;
}

/** "flash attention off, 2 threads" -> "fa off, 2 t". */
export function shortenSetting(used: string | undefined): string | undefined {
  return used?.replace("flash attention", "fa").replace(/ threads?$/, " t");
}

/** What was measured where, for the line above a table. */
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
