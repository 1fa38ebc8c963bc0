import { formatNumber, formatRatio, type Report } from "../report.js";
import { alignTable } from "./tables.js";

const METRIC = "tokens per second, deterministic: true";
const METRIC_FREE = "tokens per second, deterministic: false";
const PEERS = ["llama-batched-bench", "node-llama-cpp", "ours, deterministic: false"];

/**
 * A line for each model, a column for each number of sequences: tokens per second with `deterministic: true`, and its
 * ratio to each peer where that was measured. A case that misses a target is bold.
 */
export function formatDecode({ rows }: Report): string {
  const cases = rows.map((row) => splitCase(row.case));
  const models = [...new Set(cases.map(({ model }) => model))];
  const counts = [...new Set(cases.map(({ count }) => count))];
  const describe = (model: string, count: string): string => {
    const found = rows.filter((row) => row.case === `${model}, ${count}`);
    const promised = found.find(({ metric }) => metric === METRIC);
    if (!promised) return "";
    const ratios = PEERS.map((name) => (name in promised.ratio ? formatRatio(promised.ratio[name]!, "") : "-"));
    const text = `${formatNumber(promised.ours)}: ${ratios.join(", ")}`;
    const isMissed = found.some(({ metric, met }) => metric !== METRIC_FREE && met === false);
    return isMissed ? `**${text}**` : text;
  };
  return [
    `Tokens per second with \`deterministic: true\`: times ${PEERS.slice(0, 2).join(", times ")}, times ours with \`deterministic: false\`.`,
    alignTable([["", ...counts], ...models.map((model) => [model, ...counts.map((count) => describe(model, count))])]),
  ].join("\n\n");
}

/** "cria-tiny F32, 8 sequences" -> its two parts. */
function splitCase(title: string): { model: string; count: string } {
  const at = title.lastIndexOf(", ");
  return { model: title.slice(0, at), count: title.slice(at + 2) };
}
