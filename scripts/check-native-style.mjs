// Whether the C++ of native/ is formatted (native/.clang-format) and free of what clang-tidy finds (native/.clang-tidy).
//
//   node scripts/check-native-style.mjs --format            every file
//   node scripts/check-native-style.mjs --write             formats every file
//   node scripts/check-native-style.mjs --tidy changed      units that changed since main, or in the last commit; a few of them
//   node scripts/check-native-style.mjs --tidy all          every unit, some minutes
//
// Each prints a line of result, and what is wrong. The exit code is 1 when anything is, 2 when a tool is not installed.
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { nativeRoot } from "../native/scripts/llama-paths.mjs";
import { listCommands } from "./check-compilers.mjs";

const run = promisify(execFile);
/** Another version formats differently, and finds other things. */
export const FORMATTER = "clang-format-19";
export const TIDY = "clang-tidy-19";
/** Of `npm test`: what two cores check in half a minute. The others wait for the night. */
const MOST_CHANGED = 6;

export const isInstalled = (program) => spawnSync(program, ["--version"]).status === 0;

function git(...args) {
  const { status, stdout } = spawnSync("git", ["-C", nativeRoot, ...args], { encoding: "utf8" });
  return status === 0 ? stdout.trim().split("\n").filter(Boolean) : [];
}

/** Sources and headers, generated ones aside. */
function listFiles() {
  return git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
    .filter((file) => /\.(cc|h|cu|cuh)$/.test(file) && git("ls-files", "--deleted", file).length === 0)
    .map((file) => join(nativeRoot, file));
}

/** Files that are not formatted. */
export async function checkFormat({ write = false } = {}) {
  const files = listFiles();
  if (write) await run(FORMATTER, ["-i", ...files]);
  const { stderr } = await run(FORMATTER, ["--dry-run", "--Werror", ...files], { maxBuffer: 1 << 28 }).catch((e) => e);
  const wrong = new Set([...(stderr ?? "").matchAll(/^(.*?):\d+:\d+: error: /gm)].map(([, file]) => file));
  return { files: files.length, problems: [...wrong].map((file) => relative(nativeRoot, file)) };
}

/** Files below native/ that differ from main, or on main from the commit before; committed or not. */
function listChanged() {
  const [head] = git("rev-parse", "HEAD");
  const [base] = [...git("merge-base", "HEAD", "origin/main"), ...git("merge-base", "HEAD", "main")];
  const since = base && base !== head ? base : "HEAD~1";
  const changed = [
    ...git("diff", "--name-only", "--relative", "--diff-filter=d", since),
    ...git("ls-files", "--others", "--exclude-standard"),
  ];
  return new Set(changed.map((file) => join(nativeRoot, file)));
}

/** What clang-tidy says of units: those of `unit` that changed with their headers, or every one. */
export async function checkTidy({ whole }) {
  const folder = mkdtempSync(join(tmpdir(), "cria-tidy-"));
  try {
    const all = (await listCommands("clang++", folder)).map(({ file }) => file);
    const changed = whole ? null : listChanged();
    // A header is read with the unit of its name; others that include it wait for the night.
    const isChanged = (file) => changed.has(file) || changed.has(file.replace(/\.cc$/, ".h"));
    const due = whole ? all : all.filter(isChanged);
    const units = whole ? due : due.slice(0, MOST_CHANGED);
    const waiting = [...units];
    const problems = [];
    const work = async () => {
      for (let unit = waiting.pop(); unit; unit = waiting.pop()) {
        const { stdout, code = 0 } = await run(TIDY, ["-p", folder, "--quiet", unit], { maxBuffer: 1 << 28 }).catch(
          (e) => e,
        );
        if (code !== 0) problems.push(`${relative(nativeRoot, unit)}:\n${stdout}`);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
    return { units: units.length, left: due.length - units.length, problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function requireTool(program) {
  if (isInstalled(program)) return true;
  console.error(`${program} is not installed; run: scripts/install-test-tools.sh`);
  process.exitCode = 2;
  return false;
}

function report(summary, problems) {
  console.log(`${summary}, ${problems.length} problems`);
  for (const problem of problems) console.log(problem);
  if (problems.length > 0) process.exitCode ||= 1;
}

async function main() {
  const { values } = parseArgs({
    options: {
      format: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      tidy: { type: "string" },
    },
  });
  if ((values.format || values.write) && requireTool(FORMATTER)) {
    const { files, problems } = await checkFormat(values);
    report(`${FORMATTER}: ${files} files`, problems);
  }
  if (values.tidy && requireTool(TIDY)) {
    const { units, left, problems } = await checkTidy({ whole: values.tidy === "all" });
    report(
      `${TIDY}: ${units} units${left > 0 ? `, ${left} more changed and wait for the nightly check` : ""}`,
      problems,
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
