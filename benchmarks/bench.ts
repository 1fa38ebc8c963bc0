import { parseArgs } from "node:util";
import type { Benchmark } from "./benchmark.js";
import { makeReport, printReport } from "./report.js";
import { saveReport } from "./save-report.js";

/** Each loads only when it runs: they need different packages. */
const benchmarks: Record<string, () => Promise<Benchmark>> = {
  algorithms: () => import("./algorithms/index.js"),
  decode: () => import("./decode/index.js"),
  "multi-turn": () => import("./multi-turn/index.js"),
  step: () => import("./step/index.js"),
  tokenize: () => import("./tokenize/index.js"),
  train: () => import("./train/index.js"),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean" }, save: { type: "boolean" }, only: { type: "string" } },
});
const [name] = positionals;
const load = name === undefined ? undefined : benchmarks[name];
if (!name || !load) {
  console.error(`usage: pnpm bench <name> [--json] [--save] [--only <part of a case's name>]`);
  console.error(`benchmarks: ${Object.keys(benchmarks).join(", ")}`);
  process.exit(name ? 1 : 0);
}
const includes = (title: string) => values.only === undefined || title.includes(values.only);
// Progress goes to standard error: standard output is the table or the JSON alone.
const benchmark = await load();
const rows = await benchmark.run({ includes, log: (text) => console.error(text) });
const report = makeReport(name, rows);
if (values.json) console.log(JSON.stringify(report, null, 2));
else printReport(report);
if (values.save) saveReport(report, benchmark, { keepOthers: values.only !== undefined });
process.exit(report.rows.some((row) => row.met === false) ? 1 : 0);
