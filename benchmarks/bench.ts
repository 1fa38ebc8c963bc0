import { parseArgs } from "node:util";
import type { Benchmark } from "./benchmark.js";
import { describeMachine, readMachine } from "./machine.js";
import { saveReport } from "./pages/results.js";
import { writePages } from "./pages/write-pages.js";
import { describeCommit, makeReport, printReport } from "./report.js";

/** Each loads only when it runs: they need different packages. */
const benchmarks: Record<string, () => Promise<Benchmark>> = {
  algorithms: () => import("./algorithms/index.js"),
  async: () => import("./async/index.js"),
  busy: () => import("./busy/index.js"),
  cluster: () => import("./cluster/index.js"),
  decode: () => import("./decode/index.js"),
  drafting: () => import("./drafting/index.js"),
  images: () => import("./images/index.js"),
  length: () => import("./length/index.js"),
  learning: () => import("./learning/index.js"),
  "multi-turn": () => import("./multi-turn/index.js"),
  quick: () => import("./quick/index.js"),
  roofline: () => import("./roofline/index.js"),
  serve: () => import("./serve/index.js"),
  step: () => import("./step/index.js"),
  tokenize: () => import("./tokenize/index.js"),
  train: () => import("./train/index.js"),
  trl: () => import("./trl/index.js"),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean" }, save: { type: "boolean" }, only: { type: "string" } },
});
const [name] = positionals;
if (name === "pages") {
  writePages();
  process.exit();
}
const load = name === undefined ? undefined : benchmarks[name];
if (!name || !load) {
  console.error(`usage: npm run bench -- <name> [--json] [--save] [--only <part of a case's name>]`);
  console.error(`       npm run bench -- pages    # makes README.md and docs/ anew from results/`);
  console.error(`benchmarks: ${Object.keys(benchmarks).join(", ")}`);
  process.exit(name ? 1 : 0);
}
const commit = describeCommit();
if (values.save) checkSavable();
const includes = (title: string) => values.only === undefined || title.includes(values.only);
// Progress goes to standard error: standard output has only the table or the JSON.
const log = (text: string) => console.error(text);
const machine = readMachine();
log(describeMachine(machine));
const benchmark = await load();
const report = makeReport(name, await benchmark.run({ includes, log }), machine, commit);
if (report.rows.length === 0) {
  console.error(`no case of ${name} has ${JSON.stringify(values.only)} in its name`);
  process.exit(1);
}
if (values.json) console.log(JSON.stringify(report, null, 2));
else printReport(report);
if (values.save) {
  saveReport(report, { keepOthers: values.only !== undefined });
  writePages();
}
process.exit(report.rows.some((row) => row.met === false) ? 1 : 0);

/** Saved results must be repeatable: a commit determines the code, and the machine's kind the rest. */
function checkSavable(): void {
  const problems = [
    ...(commit.endsWith("+changes") ? ["tracked files differ from the commit: commit them first"] : []),
    ...["CRIA_BENCHMARK_THREADS", "CRIA_CPU_KERNEL"]
      .filter((variable) => process.env[variable])
      .map((variable) => `${variable} is set: results are kept for what the machine itself chooses`),
  ];
  if (problems.length === 0) return;
  console.error(`--save: ${problems.join("; ")}`);
  process.exit(1);
}
