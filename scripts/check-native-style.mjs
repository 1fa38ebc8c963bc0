// Checks that the C++ of native/ is formatted (native/.clang-format) and free of clang-tidy's findings
// (native/.clang-tidy). CUDA sources (.cu) are only checked for format.
//
//   node scripts/check-native-style.mjs --format            every file
//   node scripts/check-native-style.mjs --write             formats every file
//   node scripts/check-native-style.mjs --tidy changed      a few units: what changed last on this branch comes first
//   node scripts/check-native-style.mjs --tidy all          every unit, some minutes
//
// Each prints a line with the result, and the mistakes. The exit code is 1 when anything is, 2 when a tool is not
// installed.
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { nativeRoot } from "../native/scripts/llama-paths.mjs";
import { listCommands } from "./check-compilers.mjs";

const run = promisify(execFile);
/** Another version formats differently, and finds other things. */
export const FORMATTER = "clang-format-19";
export const TIDY = "clang-tidy-19";
/** Most units in `npm test`: as many as two cores check in half a minute. The others wait for the night. */
export const MOST_CHANGED = 4;

export const isInstalled = (program) => spawnSync(program, ["--version"]).status === 0;

/** Sources and headers of native/, as absolute paths. */
export function listFiles() {
  return ["include", "kernels", "src", "test"].flatMap((part) =>
    readdirSync(join(nativeRoot, part), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(cc|h|cu|cuh)$/.test(file))
      .map((file) => join(nativeRoot, part, file)),
  );
}

/** The number of checked files, and the unformatted ones. */
export async function checkFormat({ files = listFiles(), write = false } = {}) {
  const style = `--style=file:${join(nativeRoot, ".clang-format")}`;
  if (write) await run(FORMATTER, [style, "-i", ...files]);
  const { stderr, code, message } = await run(FORMATTER, [style, "--dry-run", "--Werror", ...files], {
    maxBuffer: 1 << 28,
  }).catch((error) => error);
  const wrong = new Set([...stderr.matchAll(/^(.*?):\d+:\d+: error: /gm)].map(([, file]) => file));
  if (code && wrong.size === 0) throw new Error(`${FORMATTER} failed:\n${stderr || message}`);
  return { files: files.length, problems: [...wrong].map((file) => relative(nativeRoot, file)) };
}

const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/**
 * Absolute paths of files below `folder` that differ from main, or on main from the commit before; committed or not,
 * the last changed first. A clone without that history has only the last commit: then all files in it. Empty without
 * git.
 */
export function listChanged(folder = nativeRoot) {
  const git = (...args) => {
    const { status, stdout } = spawnSync("git", ["-C", folder, ...args], { encoding: "utf8" });
    return status === 0 ? stdout.split("\n").filter(Boolean) : [];
  };
  const listSince = (commit) => git("diff", "--name-only", "--relative", "--diff-filter=d", commit);
  const [head] = git("rev-parse", "HEAD");
  const [before = EMPTY_TREE] = git("rev-parse", "--verify", "--quiet", "HEAD~1");
  const bases = ["origin/main", "main"].flatMap((main) => git("merge-base", "HEAD", main));
  const base = bases.find((commit) => commit !== head) ?? before;
  const changed = [
    ...git("ls-files", "--others", "--exclude-standard"),
    ...listSince("HEAD"),
    ...listSince(before),
    ...listSince(base),
  ];
  return [...new Set(changed)].map((file) => join(folder, file));
}

/** The units that `files` are read with: a header with the unit of its name, else with the first that includes it. */
export function selectUnits(files, units) {
  const isIncluded = (header) => {
    const line = new RegExp(`^#include "([^"]*/)?${basename(header).replaceAll(".", "\\.")}"`, "m");
    return units.find((unit) => line.test(readFileSync(unit, "utf8")));
  };
  const select = (file) => {
    if (!file.endsWith(".h")) return units.includes(file) ? file : undefined;
    const own = file.replace(/\.h$/, ".cc");
    return units.includes(own) ? own : isIncluded(file);
  };
  return [...new Set(files.map(select).filter(Boolean))];
}

/** clang-tidy's findings in one unit; "" without any. `database` is the folder of compile_commands.json. */
export async function tidyUnit(unit, database) {
  const args = [`--config-file=${join(nativeRoot, ".clang-tidy")}`, "--quiet", "-p", database, unit];
  const { stdout, stderr, message, code = 0 } = await run(TIDY, args, { maxBuffer: 1 << 28 }).catch((error) => error);
  return code === 0 ? "" : `${relative(nativeRoot, unit)}:\n${stdout || stderr || message}`;
}

/**
 * Those that CMake compiles on this machine, and the tests' programs, which clang-tidy reads with the flags of the
 * former.
 */
function listUnits(compiled) {
  const others = listFiles().filter((file) => file.endsWith(".cc") && !file.startsWith(join(nativeRoot, "src")));
  const isReadable = (file) => process.arch === "x64" || !/_avx\d|_in_(halves|fours)/.test(file);
  return [...new Set([...compiled, ...others.filter(isReadable)])];
}

/** clang-tidy's findings in every unit, or in a few changed ones; `left` is the number of other changed ones. */
export async function checkTidy({ whole }) {
  const database = mkdtempSync(join(tmpdir(), "cria-tidy-"));
  try {
    const all = listUnits((await listCommands("clang++", database)).map(({ file }) => file));
    const due = whole ? all : selectUnits(listChanged(), all);
    const units = whole ? due : due.slice(0, MOST_CHANGED);
    const waiting = [...units];
    const problems = [];
    const work = async () => {
      for (let unit = waiting.pop(); unit; unit = waiting.pop()) {
        const problem = await tidyUnit(unit, database);
        if (problem) problems.push(problem);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
    return { units: units.length, left: due.length - units.length, problems };
  } finally {
    rmSync(database, { recursive: true, force: true });
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
    const { files, problems } = await checkFormat({ write: values.write });
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
