import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..", "..");
const firstLine = (command, args) => execFileSync(command, args, { encoding: "utf8" }).split("\n")[0];

/**
 * Ends a script of checks: its exit code, and, if `out` is given, <out>.json and <out>.md. `programs`: those whose versions
 * count, by their part.
 */
export function reportChecks({ out, title, script, started, checks, programs, remark }) {
  const failed = checks.filter(({ ok }) => !ok);
  process.exitCode = failed.length > 0 ? 1 : 0;
  if (!out) return;
  const versions = Object.fromEntries(
    Object.entries(programs).map(([part, program]) => [part, firstLine(program, ["--version"])]),
  );
  const result = {
    date: new Date().toISOString(),
    commit: firstLine("git", ["-C", root, "rev-parse", "--short=8", "HEAD"]),
    ...versions,
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
    seconds: Math.round((performance.now() - started) / 1000),
    checks,
  };
  const line = ({ name, ok, seconds, note }) =>
    `| ${name} | ${ok ? "ok" : "FAILED"} | ${seconds} | ${note.split("\n")[0]} |`;
  writeFileSync(`${out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(
    `${out}.md`,
    `# ${title}

\`node scripts/nightly/${script}\`, ${result.date}, commit ${result.commit}, ${Object.values(versions).join(", ")},
${result.cpu}. **${failed.length} failures**, ${result.seconds} s.

| check | result | s | |
| --- | --- | --- | --- |
${checks.map(line).join("\n")}

${remark}
`,
  );
}
