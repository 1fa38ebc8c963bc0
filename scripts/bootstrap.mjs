// Makes a fresh checkout ready: dependencies (frozen lockfile), native addon, library for images, builds. Does nothing
// twice: dependencies by the lockfile's hash, addon and library by stamps, builds by turbo's cache. Needs Node 20 and
// npm, a C++17 compiler, CMake, git.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { npmProgram } from "./programs.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const stampFile = join(root, "node_modules", ".cria-bootstrap");

/** @param {string} title @param {string[]} command */
function run(title, [program, ...args]) {
  process.stderr.write(`bootstrap: ${title}\n`);
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: "1", npm_config_update_notifier: "false" };
  const { status, error, stdout, stderr } = spawnSync(program, args, { cwd: root, env, encoding: "utf8" });
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}\nbootstrap: ${title} failed (above)\n`);
  process.exit(1);
}

const pnpm = (title, ...args) => run(title, npmProgram("npx", "--yes", packageManager, ...args));

const major = Number(process.versions.node.split(".")[0]);
if (major < 20) {
  process.stderr.write(`bootstrap: Cria needs Node 20 or newer; this is ${process.version}\n`);
  process.exit(1);
}
const inputs = [process.version, process.platform, process.arch, readFileSync(join(root, "pnpm-lock.yaml"))];
const stamp = inputs.reduce((hash, input) => hash.update(input), createHash("sha256")).digest("hex");
if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) {
  pnpm("installing dependencies", "install", "--frozen-lockfile");
  writeFileSync(stampFile, stamp);
}
pnpm("building (native addon and packages; cached)", "exec", "turbo", "run", "build", "--output-logs=errors-only");
const vision = [process.execPath, join("native", "scripts", "build-vision.mjs")];
run("building the library for images (once, a minute or two)", vision);
