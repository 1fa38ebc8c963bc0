// Hostile programs in the sandboxes: each on a pool where programs before it tried to end the process, to stay or to
// take all memory, and a batch of 64 with endless ones among them under the default limits. The programs and their
// expected endings are in packages/tools/src/sandbox/hostile; the tests run the quick ones. Needs a build; about 10
// minutes.
//   node scripts/nightly/sandbox.mjs [--only javascript] [--out scripts/nightly/sandbox]
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { JavaScriptSandbox, PythonSandbox } from "../../packages/tools/dist/internal.js";
import { javascriptPrograms } from "../../packages/tools/src/sandbox/hostile/javascript-programs.mjs";
import { pythonPrograms } from "../../packages/tools/src/sandbox/hostile/python-programs.mjs";
import { runBatch, runHostile } from "../../packages/tools/src/sandbox/hostile/run-hostile.mjs";

const root = join(import.meta.dirname, "..", "..");
const { values } = parseArgs({ options: { only: { type: "string" }, out: { type: "string" } } });
/** Seconds within which a batch must be over. */
const BATCH_S = 30;

const kinds = {
  javascript: { Sandbox: JavaScriptSandbox, programs: javascriptPrograms },
  python: { Sandbox: PythonSandbox, programs: pythonPrograms },
};
const batches = [];
const hostile = [];
const problems = [];
for (const language of /** @type {(keyof typeof kinds)[]} */ (Object.keys(kinds))) {
  if (values.only && values.only !== language) continue;
  const { Sandbox, programs } = kinds[language];
  const pool = new Sandbox();
  const load = loadavg()[0];
  const batch = await runBatch(language, pool);
  await pool.dispose();
  batches.push({ language, load, ...batch });
  console.log(
    `${language}: ${batch.right} right, ${batch.stopped} stopped, the last after ${batch.slowestS.toFixed(1)} s`,
  );
  problems.push(...batch.wrong);
  if (batch.right !== 56 || batch.stopped !== 8)
    problems.push(`${language}: not 56 right answers and 8 that are stopped`);
  if (batch.slowestS > BATCH_S) problems.push(`${language}: the last answer came after ${batch.slowestS.toFixed(1)} s`);

  const results = [];
  problems.push(
    ...(await runHostile(programs, Sandbox, (result) => {
      results.push(result);
      console.log(`${result.problem ? "FAILED" : "ok    "} ${language}, ${result.name} ${result.problem}`);
    })),
  );
  hostile.push({ language, results });
}

const count = (results, status) => results.filter((result) => result.status === status).length;
const STATUSES = ["ok", "error", "cpu", "timeout", "memory", "crashed"];
const result = {
  date: new Date().toISOString(),
  commit: spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim(),
  node: process.version,
  cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
  batches: batches.map(({ wrong, ...batch }) => batch),
  hostile: hostile.map(({ language, results }) => ({ language, programs: results.length, results })),
  problems,
};
process.exitCode = problems.length > 0 ? 1 : 0;
console.log(problems.length === 0 ? "no problems" : problems.join("\n"));
if (values.out) {
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const batchRows = batches.map(
    ({ language, right, stopped, slowestS, load }) =>
      `| ${language} | ${right} | ${stopped} | ${slowestS.toFixed(1)} | ${load.toFixed(1)} |`,
  );
  const hostileRows = hostile.map(({ language, results }) => {
    const most = results.reduce((best, one) => (one.peakMb > best.peakMb ? one : best));
    const ends = STATUSES.map((status) => count(results, status)).join(" | ");
    return `| ${language} | ${results.length} | ${ends} | ${most.peakMb} (${most.name}) | ${most.baseMb} |`;
  });
  writeFileSync(
    `${values.out}.md`,
    `# Hostile programs in the sandboxes

\`node scripts/nightly/sandbox.mjs\`, ${result.date}, commit ${result.commit}, Node ${result.node}, ${result.cpu}.
**${problems.length} problems.** After each program the next one on the same pool was right, and this process went on.

64 programs at once, 8 of them endless, default limits, from a start without any process:

| | right | stopped | last after s | load of the machine before |
| --- | --- | --- | --- | --- |
${batchRows.join("\n")}

One after the other; 1 s of CPU time for those that it may stop and 30 s for the others, 2,000 bytes of output, 32 MiB (JavaScript) and 96 MiB (Python). Memory is the
most that the process held, as the system tells it:

| | programs | ${STATUSES.join(" | ")} | most MiB | idle MiB |
| --- | --- | ${STATUSES.map(() => "---").join(" | ")} | --- | --- |
${hostileRows.join("\n")}
${problems.length > 0 ? `\n${problems.map((problem) => `- ${problem.replaceAll("\n", " ")}`).join("\n")}\n` : ""}`,
  );
}
