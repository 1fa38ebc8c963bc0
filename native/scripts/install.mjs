// Runs when @cria/native is installed: does nothing when a prebuilt addon loads here, else builds the addon.
// CRIA_SKIP_BUILD=1 installs without one, for programs that use no engine.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import loader from "../index.cjs";
import { howToInstallTools, listMissingTools } from "./build-tools.mjs";
import { nativeRoot } from "./llama-paths.mjs";

/**
 * The reason no addon loads here; null when one does. Runs in a child process: a library that does not fit may kill it.
 */
function findProblem() {
  const program = 'require("./index.cjs").loadAddon().runtimeInfo()';
  const { status, stderr } = spawnSync(process.execPath, ["-e", program], { cwd: nativeRoot, encoding: "utf8" });
  if (status === 0) return null;
  return /Error: .*(\n {2}.*)*/.exec(stderr)?.[0] ?? stderr.trim();
}

/** Explains the problem and each way out. */
function explain(problem, reason) {
  const { version } = JSON.parse(readFileSync(join(nativeRoot, "package.json"), "utf8"));
  return `
@cria/native: no native addon for ${process.platform}-${process.arch}.
  ${problem.replaceAll("\n", "\n  ")}
It could not be built either: ${reason}

Do one of these:
  - use the prebuilt addon, if there is one for this platform: install with optional packages
    (${loader.namePrebuild()}@${version}; --omit=optional and --no-optional leave it out)
  - install the build tools, then install again:
${howToInstallTools}
  - continue without the engine: set CRIA_SKIP_BUILD=1 while installing
`;
}

function install() {
  if (process.env.CRIA_SKIP_BUILD) return;
  const problem = findProblem();
  if (problem === null) return;
  const missing = listMissingTools();
  if (missing.length > 0) throw new Error(explain(problem, `this machine lacks ${missing.join(", ")}.`));
  const { status } = spawnSync(process.execPath, [join(nativeRoot, "scripts", "build.mjs")], { stdio: "inherit" });
  if (status !== 0) throw new Error(explain(problem, "see above."));
  const remaining = findProblem();
  if (remaining !== null) throw new Error(explain(remaining, "it was built, but does not load."));
}

try {
  install();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
