import { formatNumber, formatRatio, type Report } from "../report.js";
import { alignTable } from "./tables.js";

const METRIC = {
  free: "tokens per second, deterministic: false",
  repeatable: "tokens per second, deterministic: true",
};
const PEERS = ["llama-batched-bench", "node-llama-cpp"];

/**
 * A line for each model, a column for each number of sequences: tokens per second with `deterministic: false`, its
 * ratio to each peer, and the share that `deterministic: true` keeps where that was measured. A case that misses a
 * target is bold.
 */
export function formatDecode({ rows }: Report): string {
  const cases = rows.map((row) => splitCase(row.case));
  const models = [...new Set(cases.map(({ model }) => model))];
  const counts = [...new Set(cases.map(({ count }) => count))];
  const describe = (model: string, count: string): string => {
    const found = rows.filter((row) => row.case === `${model}, ${count}`);
    const free = found.find(({ metric }) => metric === METRIC.free);
    const repeatable = found.find(({ metric }) => metric === METRIC.repeatable);
    if (!free) return "";
    const ratios = PEERS.map((name) => formatRatio(free.ratio[name]!, ""));
    const kept = repeatable ? formatNumber(repeatable.ours / free.ours) : "-";
    const text = `${formatNumber(free.ours)}: ${[...ratios, kept].join(", ")}`;
    return found.some(({ met }) => met === false) ? `**${text}**` : text;
  };
  return [
    `Tokens per second with \`deterministic: false\`: times ${PEERS.join(", times ")}, and the share that \`deterministic: true\` keeps.`,
    alignTable([["", ...counts], ...models.map((model) => [model, ...counts.map((count) => describe(model, count))])]),
  ].join("\n\n");
}

/** "cria-tiny F32, 8 sequences" -> its two parts. */
function splitCase(title: string): { model: string; count: string } {
  const at = title.lastIndexOf(", ");
  return { model: title.slice(0, at), count: title.slice(at + 2) };
}
