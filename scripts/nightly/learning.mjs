// Shared by scripts that train examples with several seeds: the report next to the script, and the curves in the docs.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { drawSvgChart } from "../../apps/trainer/src/demo/draw-chart.ts";

export const root = join(import.meta.dirname, "..", "..");
const colors = ["#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#8c564b"];

export const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;

/** Time, commit and machine of a report. */
export function describeRun() {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim(),
    node: process.version,
    cpu: `${cpus().length} cores of ${cpus()[0].model}`,
  };
}

/** Makes an example's rows; `args` are its program's. */
export function makeData(folder, args = []) {
  execFileSync("npm", ["run", "--silent", "make-data", "--", ...args], { cwd: folder, stdio: "inherit" });
}

/** Seconds of wall and CPU time of some work, together with its result. */
export async function measureTime(work) {
  const began = performance.now();
  const cpu = process.cpuUsage();
  const result = await work();
  const { user, system } = process.cpuUsage(cpu);
  const seconds = Math.round((performance.now() - began) / 1000);
  return { result, time: { seconds, cpu_seconds: Math.round((user + system) / 1e6) } };
}

/**
 * Draws `docs/<name>.svg`: each run's means of `window` steps, at the last of them.
 * @param runs `{ label, values }`
 */
export function drawCurves(name, title, runs, window) {
  const series = runs.map(({ label, values }, i) => ({
    name: label,
    color: colors[i % colors.length],
    points: values
      .slice(window - 1)
      .map((_, step) => ({ x: step + window, y: mean(values.slice(step, step + window)) })),
  }));
  writeFileSync(join(root, "docs", `${name}.svg`), drawSvgChart(title, series));
}

/** The report next to the scripts, or null. Other processes write too: read it again before each write. */
export function readReport(file) {
  const path = join(import.meta.dirname, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** Writes a report next to the scripts; unmet expectations are an error of the program. */
export function writeReport(file, report) {
  writeFileSync(join(import.meta.dirname, file), `${JSON.stringify(report, null, 2)}\n`);
  if (report.misses.length === 0) return;
  console.error(report.misses.join("\n"));
  process.exitCode = 1;
}
