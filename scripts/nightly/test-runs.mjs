// Runs the README's test command again and again, half of the runs next to a process that keeps every core busy, and
// writes test-runs.json and test-runs.md next to this file. Runs are added to the recorded ones, each with its commit,
// so that ten of them need not fit into one evening; `--anew` starts over. Has the requirements of `npm test`; 15 to 40
// minutes a run.
//   node scripts/nightly/test-runs.mjs [--quiet 5] [--busy 5] [--occupied 0] [--anew]
// `--occupied` adds runs beside builds, tests or trainings that keep every core busy already: no process is started for them.
// The exit code is 1 if a run failed.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, stripVTControlCharacters } from "node:util";

const { values } = parseArgs({
  options: {
    quiet: { type: "string", default: "5" },
    busy: { type: "string", default: "5" },
    occupied: { type: "string", default: "0" },
    anew: { type: "boolean", default: false },
  },
});

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const result = join(import.meta.dirname, "test-runs");
const read = (args) => spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout.trim();
const commit = read(["rev-parse", "--short", "HEAD"]);
if (read(["status", "--porcelain", "--untracked-files=no"]) !== "")
  throw new Error("commit first: a run is of a commit");

/** One process that spins on every core; it ends with this one. */
const SPIN = `
  const { Worker } = require("node:worker_threads");
  for (let i = 0; i < ${availableParallelism()}; i++) new Worker("for (;;);", { eval: true });
  process.stdin.resume().on("end", () => process.exit());
`;

async function runTests() {
  const started = performance.now();
  const child = spawn("npm", ["test"], {
    cwd: root,
    env: { ...process.env, CI: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  const [code] = await once(child, "close");
  // The record names files of the project, wherever this checkout lies.
  output = stripVTControlCharacters(output).replaceAll(`${root}/`, "");
  const count = (word) =>
    [...output.matchAll(/^\s*Tests\s+(.*)$/gm)].reduce(
      (sum, [, counts]) => sum + Number(new RegExp(`(\\d+) ${word}`).exec(counts)?.[1] ?? 0),
      0,
    );
  const failures =
    code === 0
      ? []
      : output
          .slice(output.search(/^.*: FAILED\b(?! \()/m))
          .split("\n")
          .slice(0, 60);
  const seconds = Math.round((performance.now() - started) / 1000);
  return {
    ok: code === 0,
    seconds,
    passed: count("passed"),
    failed: count("failed"),
    skipped: count("skipped"),
    failures,
  };
}

const runs =
  !values.anew && existsSync(`${result}.json`) ? JSON.parse(readFileSync(`${result}.json`, "utf8")).runs : [];
const known = runs.length;

function save() {
  writeFileSync(`${result}.json`, `${JSON.stringify({ runs }, null, 2)}\n`);
  const rows = runs.map(({ date, commit, cpu, machine, ok, passed, failed, skipped, seconds }) =>
    [date, commit, cpu, machine, ok ? "passed" : "FAILED", passed, failed, skipped, seconds].join(" | "),
  );
  const lines = [
    "# The test command, again and again",
    "",
    "Busy: beside a process that spins on every core. Occupied: beside builds, tests or trainings, which keep every core busy.",
    "",
    "| date | commit | CPU | machine | result | tests passed | failed | skipped | seconds |",
    "| --- | --- | --- | --- | --- | --: | --: | --: | --: |",
    ...rows.map((row) => `| ${row} |`),
    "",
    "Again: `node scripts/nightly/test-runs.mjs`.",
    "",
  ];
  writeFileSync(`${result}.md`, lines.join("\n"));
}

for (const machine of ["quiet", "busy", "occupied"].flatMap((kind) => Array(Number(values[kind])).fill(kind))) {
  const spins = machine === "busy";
  const spinner = spins ? spawn(process.execPath, ["-e", SPIN], { stdio: ["pipe", "ignore", "inherit"] }) : undefined;
  const run = await runTests();
  spinner?.stdin.end();
  runs.push({ date: new Date().toISOString().slice(0, 16), commit, cpu: cpus()[0].model.trim(), machine, ...run });
  save();
  console.log(`${machine} ${run.ok ? "passed" : "FAILED"} in ${run.seconds} s`, run.failures.join("\n"));
}
process.exit(runs.slice(known).every(({ ok }) => ok) ? 0 : 1);
