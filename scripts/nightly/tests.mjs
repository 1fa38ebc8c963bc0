// Runs the tests that `npm test` shortens, with everything they can try, and writes tests.json and tests.md beside this
// file. They are those that import isNightly, amount or someOf of @cria/core/testing. Has the requirements of `npm test`.
//   node scripts/nightly/tests.mjs (after `npm run bootstrap`; 10 minutes)
// The exit code is 1 if a test failed.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Whether a test file imports one of the names. */
const isShortened = (text) => /import \{[^}]*\b(isNightly|amount|someOf)\b[^}]*\} from "[^"]*core\//.test(text);

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const read = (args) => spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout.trim();
const files = read(["grep", "-lwE", "isNightly|amount|someOf", "--", "*.test.ts"])
  .split("\n")
  .filter((file) => isShortened(readFileSync(join(root, file), "utf8")));
const folder = mkdtempSync(join(tmpdir(), "cria-nightly-"));
const report = join(folder, "report.json");
const started = performance.now();
const { status } = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  ["run", ...files, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
  { cwd: root, stdio: "inherit", env: { ...process.env, CI: "1", CRIA_NIGHTLY: "1" } },
);
const { testResults } = JSON.parse(readFileSync(report, "utf8"));
rmSync(folder, { recursive: true });
const rows = testResults
  .map(({ name, startTime, endTime, assertionResults }) => {
    const count = (state) => assertionResults.filter((test) => test.status === state).length;
    const seconds = Math.round((endTime - startTime) / 1000);
    const file = relative(root, name);
    return { file, passed: count("passed"), failed: count("failed"), skipped: count("pending"), seconds };
  })
  .sort((a, b) => a.file.localeCompare(b.file));
const result = {
  date: new Date().toISOString().slice(0, 10),
  commit: read(["rev-parse", "--short", "HEAD"]),
  cpu: cpus()[0].model.trim(),
  ok: status === 0,
  seconds: Math.round((performance.now() - started) / 1000),
  files: rows,
};
const target = join(import.meta.dirname, "tests");
writeFileSync(`${target}.json`, `${JSON.stringify(result, null, 2)}\n`);
const lines = [
  "# The shortened tests, whole",
  "",
  `${result.date}, ${result.commit}, ${result.cpu}: ${result.ok ? "passed" : "FAILED"}, ${result.seconds} s.`,
  "",
  "| file | passed | failed | skipped | seconds |",
  "| --- | --: | --: | --: | --: |",
  ...rows.map(
    ({ file, passed, failed, skipped, seconds }) => `| ${[file, passed, failed, skipped, seconds].join(" | ")} |`,
  ),
  "",
  "Again: `node scripts/nightly/tests.mjs`.",
];
writeFileSync(`${target}.md`, `${lines.join("\n")}\n`);
process.exit(status ?? 1);
