import { makeReport, printReport, type Row } from "./report.js";

/** Each loads only when it runs: they need different packages. */
const benchmarks: Record<string, () => Promise<{ run(): Promise<Row[]> }>> = {
  tokenize: () => import("./tokenize/index.js"),
};

const args = process.argv.slice(2);
const [name] = args.filter((arg) => !arg.startsWith("--"));
const load = name === undefined ? undefined : benchmarks[name];
if (!name || !load) {
  console.error(`usage: pnpm bench <name> [--json]\nbenchmarks: ${Object.keys(benchmarks).join(", ")}`);
  process.exit(name ? 1 : 0);
}
const report = makeReport(name, await (await load()).run());
if (args.includes("--json")) console.log(JSON.stringify(report, null, 2));
else printReport(report);
process.exit(report.rows.some((row) => row.met === false) ? 1 : 0);
