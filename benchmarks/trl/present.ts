/** Shows TRL's comparison as one table, and in a sentence. */
import { alignTable } from "../pages/tables.js";
import { formatNumber, type Report } from "../report.js";

type Rows = Report["rows"];

const baseOf = (metric: string) => /, our base in (\w+)$/.exec(metric)?.[1] ?? "";
const quantityOf = (metric: string) => metric.replace(/(, median)?, our base in \w+$/, "");

/** A line for each quantity of each case: ours over each base, and each peer's, with how many times ours it is. */
export function formatTable({ rows }: Report): string {
  const cases = [...new Set(rows.map(({ case: title }) => title))];
  return cases.map((title) => `${title}:\n\n${formatCase(rows.filter((row) => row.case === title))}`).join("\n\n");
}

function formatCase(rows: Rows): string {
  const bases = [...new Set(rows.map(({ metric }) => baseOf(metric)))];
  const peers = Object.keys(rows[0]!.peers);
  const quantities = [...new Set(rows.map(({ metric }) => quantityOf(metric)))];
  const lines = quantities.map((quantity) => {
    const own = bases.map(
      (base) => rows.find((row) => row.metric.startsWith(quantity) && baseOf(row.metric) === base)!,
    );
    const theirs = peers.map((peer) => {
      const value = own[0]!.peers[peer]!;
      const times = own.map(({ ours }) => formatNumber(value / ours)).join(", ");
      return `${formatNumber(value)} (${times})`;
    });
    return [quantity, ...own.map(({ ours }) => formatNumber(ours)), ...theirs];
  });
  return alignTable([["", ...bases.map((base) => `Cria, ${base}`), ...peers], ...lines]);
}

/** States the ratio of the peers' step times to ours, and our share of their memory. */
export function describeTrl(rows: Rows): string[] {
  const steps = rows.filter(({ metric }) => metric.startsWith("seconds a step"));
  return steps.map((step) => {
    const memory = rows.find(
      ({ case: title, metric }) =>
        title === step.case && metric.startsWith("peak memory") && baseOf(metric) === baseOf(step.metric),
    )!;
    const parts = Object.keys(step.peers).map(
      (peer) =>
        `${formatNumber(step.peers[peer]! / step.ours)} times as long with ${peer}, where Cria takes ${formatNumber(memory.ours / memory.peers[peer]!)} of the memory`,
    );
    return `A GRPO step of SmolLM2-135M-Instruct with tools (base in ${baseOf(step.metric)}) takes ${parts.join("; ")}.`;
  });
}
