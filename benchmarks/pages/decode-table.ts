import { formatNumber, formatRatio, type Report } from "../report.js";
import { alignTable, shortenSetting } from "./tables.js";

const METRIC = {
  free: "tokens per second, deterministic: false",
  repeatable: "tokens per second, deterministic: true",
};

/** A line for each case; ratios are those of `deterministic: false`, or what the case has. */
export function formatDecode(report: Report): string {
  const cases = [...new Set(report.rows.map((row) => row.case))];
  const peers = ["llama-batched-bench", "node-llama-cpp"];
  const lines = cases.map((title) => {
    const rows = report.rows.filter((row) => row.case === title);
    const find = (metric: string) => rows.find((row) => row.metric === metric);
    const free = find(METRIC.free);
    const ours = (row: ReturnType<typeof find>) =>
      row ? `${formatNumber(row.ours)} (${shortenSetting(row.settings?.ours?.used) ?? "one setting"})` : "";
    const beside = (name: string) =>
      free
        ? `${formatNumber(free.peers[name]!)} (${shortenSetting(free.settings?.[name]?.used) ?? "one setting"}): ${formatRatio(free.ratio[name]!, "")}`
        : "";
    const outside = find("% of the time outside llama_decode");
    const missed = rows.filter(({ met }) => met === false).map(({ target }) => target);
    return [
      title,
      ours(free),
      ours(find(METRIC.repeatable)),
      ...peers.map(beside),
      outside ? `${formatNumber(outside.ours)} %` : "",
      missed.length > 0 ? `**missed**: ${missed.join("; ")}` : "met",
    ];
  });
  const head = ["case", "`deterministic: false`", "`deterministic: true`", ...peers, "outside llama_decode", "targets"];
  return alignTable([head, ...lines]);
}
