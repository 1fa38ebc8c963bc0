/**
 * A machine's results in a few sentences: ratios to peers with their settings, and the cost of `deterministic: true`.
 */
import { median } from "../measure.js";
import { formatNumber, type Report } from "../report.js";
import { describeTrl } from "../trl/present.js";

type Rows = Report["rows"];

export function writeHeadline(reports: readonly Report[]): string[] {
  const find = (name: string) => reports.find((report) => report.name === name)?.rows ?? [];
  return [
    ...describeDecode(find("decode")),
    ...describeStep(find("step")),
    ...describeTrain(find("train")),
    ...describeTrl(find("trl")),
    ...describeMultiTurn(find("multi-turn")),
  ];
}

const FREE = ", deterministic: false";
const REPEATABLE = ", deterministic: true";
const OURS_FREE = "ours, deterministic: false";

const SIDES = ["ours", "llama-batched-bench", "node-llama-cpp"];

/** With `deterministic: true`, the default, where it was measured. */
function describeDecode(all: Rows): string[] {
  const rows = all.filter(({ metric }) => metric.startsWith("tokens per second") && metric.endsWith(REPEATABLE));
  if (rows.length === 0) return [];
  const besides = (name: string) => rows.filter(({ peers }) => name in peers);
  const peers = SIDES.slice(1).map((name) => describeRatios(besides(name), name));
  const free = besides(OURS_FREE);
  const isOne = ({ case: title }: Rows[number]) => title.endsWith(" 1 sequence");
  const parts: [Rows, string][] = [
    [free.filter(isOne), "with one sequence"],
    [free.filter((row) => !isOne(row)), "with more"],
  ];
  const costs = parts
    .filter(([part]) => part.length > 0)
    .map(([part, what]) => `${describeRange(part, OURS_FREE)} of the speed without it ${what}`);
  return [
    `Decoding with \`deterministic: true\`, the default, each side in its better setting: ${peers.filter(Boolean).join(" and ")}.`,
    `Settings: ${SIDES.map((side) => countSettings(side === "ours" ? rows : besides(side), side)).join("; ")}.`,
    ...(costs.length > 0 ? [`What \`deterministic: true\` costs: it decodes at ${costs.join(", and at ")}.`] : []),
  ];
}

function describeStep(rows: Rows): string[] {
  const steps = (ending: string) =>
    rows.filter(({ metric }) => metric.startsWith("steps per second") && metric.includes(ending));
  return describePair(steps(REPEATABLE), steps(FREE), "A GRPO step of the demo", "PyTorch");
}

function describeTrain(all: Rows): string[] {
  const rows = all.filter(({ metric }) => metric.startsWith("tokens per second"));
  const described = describeRatios(rows, "PyTorch");
  return described ? [`A training step (forward, backward, AdamW): ${described}.`] : [];
}

/** Rows without peers, of more conversations than slots, have nothing to be compared with. */
function describeMultiTurn(all: Rows): string[] {
  const rows = all.filter(
    ({ metric, peers }) => metric.startsWith("sampled tokens per second") && Object.keys(peers).length > 0,
  );
  const [repeatable, free] = [REPEATABLE, FREE].map((ending) => rows.filter(({ metric }) => metric.endsWith(ending)));
  const reuse = repeatable!.length > 0 ? [`Reuse of prefixes: ${describeRatios(repeatable!, "ours, reuse off")}.`] : [];
  return [...reuse, ...describePair(repeatable!, free!, "Conversations with tools", "node-llama-cpp's chat sessions")];
}

/** Compares a quantity with `deterministic` on and off. */
function describePair(repeatable: Rows, free: Rows, what: string, peer: string): string[] {
  const parts = [
    repeatable.length > 0 && `${describeRatios(repeatable, peer)} with \`deterministic: true\``,
    free.length > 0 && `${describeRatios(free, peer)} with \`false\``,
  ].filter(Boolean);
  return parts.length > 0 ? [`${what}: ${parts.join(", ")}.`] : [];
}

/** "1.02 to 1.84 times NAME (median 1.20 of 14)"; says so where no ratio could be made. */
function describeRatios(rows: Rows, peer: string): string {
  const name = findPeer(rows, peer);
  if (!name) return rows.length > 0 ? `no ${peer} to compare with` : "";
  const ratios = listRatios(rows, name);
  if (ratios.length === 0) return `no ratio to ${name} (peer crippled)`;
  const middle = ratios.length > 1 ? ` (median ${formatNumber(median(ratios))} of ${ratios.length})` : "";
  return `${describeRange(rows, name)} times ${name}${middle}`;
}

function describeRange(rows: Rows, name: string): string {
  const ratios = listRatios(rows, name);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map(formatNumber);
  return least === most ? least! : `${least} to ${most}`;
}

const listRatios = (rows: Rows, name: string) =>
  rows.map(({ ratio }) => ratio[name]).filter((ratio): ratio is number => typeof ratio === "number");

const findPeer = (rows: Rows, name: string) =>
  rows.flatMap(({ peers }) => Object.keys(peers)).find((peer) => peer.startsWith(name));

/** "ours flash attention off in 9, flash attention on in 3": threads are in the table. */
function countSettings(rows: Rows, side: string): string {
  const counts = new Map<string, number>();
  for (const { settings } of rows) {
    const used = settings?.[side]?.used.split(",")[0] ?? "one setting";
    counts.set(used, (counts.get(used) ?? 0) + 1);
  }
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([used, count]) => `${used} in ${count}`);
  return `${side} ${parts.join(", ")}`;
}
