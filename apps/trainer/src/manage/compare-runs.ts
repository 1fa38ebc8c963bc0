import { type ConfigDifference, compareConfigs } from "@cria/trainer/internal";
import type { RunSummary } from "@cria/viewer/api";
import { findRuns } from "../runs/find-runs.js";
import { heldOutName } from "../runs/metrics-file.js";
import { RunReader } from "../runs/run-reader.js";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { cutLeft, wrapText } from "../terminal/wrap-text.js";
import { checkRunFolder } from "./check-run-folder.js";

/** A metric of two runs, at the last line of each that has it. */
export interface MetricPair {
  name: string;
  values: [number | null, number | null];
}

export interface RunComparison {
  runs: [RunSummary, RunSummary];
  metrics: MetricPair[];
  /** `before` is of the first run, `after` of the second. */
  config: ConfigDifference[];
}

/** The metrics that people look for first; the others are in the JSON. */
const SHOWN =
  /^(reward\/score\/mean|critic\/(score\/mean|rewards\/frac_zero_std)|response_length\/(mean|clip_ratio)|num_turns\/mean|agent_loop\/tool_error_rate|actor\/(entropy|ppo_kl|pg_clipfrac|grad_norm|lr)|perf\/(throughput|time_per_step|max_memory_allocated_gb))$/;
/** Keys about a run's place and machine, which are no differences of the config. */
const PLACE = /^(machine|trainer\.(project_name|experiment_name|default_local_dir|resume_))/;

/**
 * Compares two runs.
 * @throws DataError when one of the folders is no run's.
 */
export async function compareRuns(paths: readonly [string, string]): Promise<RunComparison> {
  const readers = await Promise.all(
    paths.map(async (path) => {
      await checkRunFolder(path);
      const reader = new RunReader((await findRuns([path]))[0]!);
      await reader.refresh();
      return { ...reader.summary, path, config: reader.config, last: collectLast(reader) };
    }),
  );
  const [a, b] = readers as [(typeof readers)[number], (typeof readers)[number]];
  const summarize = ({ config: _, last: __, ...summary }: typeof a): RunSummary => summary;
  const names = [...new Set([...a.last.keys(), ...b.last.keys()])];
  return {
    runs: [summarize(a), summarize(b)],
    metrics: names.map((name) => ({ name, values: [a.last.get(name) ?? null, b.last.get(name) ?? null] })),
    config: compareConfigs(a.config ?? {}, b.config ?? {}).filter(({ key }) => !PLACE.test(key)),
  };
}

function collectLast({ metrics }: RunReader): Map<string, number> {
  const last = new Map<string, number>();
  for (const row of metrics.rows) for (const [name, value] of row) if (value !== null) last.set(name, value);
  return last;
}

/** Metrics in two columns, then the keys of the config that differ. */
export function drawComparison({ runs, metrics, config }: RunComparison, width: number): string[] {
  const format = (value: number | null) => (value === null ? "" : String(Number(value.toPrecision(4))));
  const share = (value: number | null) => (value === null ? "" : value.toFixed(3));
  const rows: [string, string, string][] = [
    ["", ...(runs.map(({ path }) => cutLeft(makePrintableLine(path), Math.floor(width / 4))) as [string, string])],
    ["status", runs[0].status, runs[1].status],
    ["step", `${runs[0].step}`, `${runs[1].step}`],
    ["success before", share(runs[0].before), share(runs[1].before)],
    ["success after", share(runs[0].after), share(runs[1].after)],
    ...metrics
      .filter(({ name }) => heldOutName.test(name) || SHOWN.test(name))
      .map(({ name, values }): [string, string, string] => [
        makePrintableLine(name),
        ...(values.map(format) as [string, string]),
      ]),
  ];
  const wide = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i]!.length)));
  const lines = rows.map((row, k) => {
    const line = wrapText(
      row.map((cell, i) => (i === 0 ? cell.padEnd(wide[i]!) : cell.padStart(wide[i]!))).join("  "),
      width,
    )[0]!;
    return k === 0 ? pc.bold(line) : line;
  });
  const show = (value: unknown) => (value === undefined ? "not set" : JSON.stringify(value));
  const differences = config.flatMap(({ key, before, after }) =>
    wrapText(makePrintableLine(`  ${key}: ${show(before)} | ${show(after)}`), width),
  );
  return [...lines, "", pc.bold(differences.length > 0 ? "config" : "the configs are the same"), ...differences];
}
