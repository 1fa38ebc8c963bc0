// Checks all of native/ with clang-tidy (native/.clang-tidy), of which `npm test` checks only a few changed units; also
// checks every file's format. Needs the tools of scripts/install-test-tools.sh.
//
//   node scripts/nightly/native-tidy.mjs [--out scripts/nightly/native-tidy]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when anything is found.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { checkFormat, checkTidy, FORMATTER, TIDY } from "../check-native-style.mjs";
import { collectChecks } from "./run-checks.mjs";

const { values } = parseArgs({ options: { out: { type: "string" } } });
const { checks, check } = collectChecks(() => true);
const read = (command, args) => spawnSync(command, args, { encoding: "utf8" }).stdout?.trim() ?? "";

await check(`${FORMATTER}: every file`, async () => describe(await checkFormat(), "files"));
await check(`${TIDY}: every unit`, async () => describe(await checkTidy({ whole: true }), "units"));
report();

function describe({ problems, ...counts }, what) {
  const summary = `${counts[what]} ${what}, ${problems.length} with problems`;
  if (problems.length > 0) throw new Error([summary, ...problems].join("\n"));
  return summary;
}

function report() {
  const failures = checks.filter(({ ok }) => !ok).length;
  process.exitCode = failures > 0 ? 1 : 0;
  if (!values.out) return;
  const result = {
    date: new Date().toISOString(),
    commit: read("git", ["-C", import.meta.dirname, "rev-parse", "--short", "HEAD"]),
    version: /version (\S+)/.exec(read(TIDY, ["--version"]))?.[1] ?? "",
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
    checks,
  };
  const rows = checks.map(
    ({ name, ok, seconds, note }) => `| ${name} | ${ok ? "ok" : "FAILED"} | ${seconds} | ${note.split("\n")[0]} |`,
  );
  const text = [
    "# Format and clang-tidy of the whole C++",
    "",
    `\`node scripts/nightly/native-tidy.mjs\`, ${result.date}, commit ${result.commit}, version ${result.version}, ${result.cpu}.`,
    `**${failures} failures.**`,
    "",
    "| check | result | s | |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "A unit is read with its headers. CUDA sources are formatted alone. Which checks run, and why others do not, stands in",
    "`native/.clang-tidy`.",
    "",
  ];
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(`${values.out}.md`, text.join("\n"));
}
