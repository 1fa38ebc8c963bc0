// Packs everything, checks the tarballs (publint, are-the-types-wrong), installs them into empty projects outside the
// repository with npm and pnpm, and uses them there: ESM, CommonJS, types, the command line (demo, init and what it
// writes), the ready-made addon, the build at install, and the message where neither works; then follows a newcomer's
// way to a trained task. Needs a build, the npm registry, a C++ compiler and CMake.
//
//   node scripts/nightly/packages.mjs [--tarballs <folder packed before>] [--only npm] [--out scripts/nightly/packages]
//
// --only takes the checks whose names begin with its text. With --out it writes <out>.json and <out>.md. The exit code
// is 1 when anything fails.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { cpus, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findNvcc } from "../../native/scripts/build-kernels.mjs";
import { packAll } from "../pack.mjs";
import { cjsConsumer, esmConsumer, typedConsumer } from "./packages/consumers.mjs";
import { walk } from "./packages/newcomer.mjs";
import { readPackedManifest, startRegistry } from "./packages/registry.mjs";
import { agentModule, useTask } from "./packages/tasks.mjs";
import { collectChecks, expect } from "./run-checks.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const model = join(root, "models", "cria-tiny.gguf");
const { values } = parseArgs({
  options: { tarballs: { type: "string" }, only: { type: "string", default: "" }, out: { type: "string" } },
});
const started = performance.now();
const work = mkdtempSync(join(tmpdir(), "cria-packages-"));
const { checks, check } = collectChecks((name) => name === "pack" || name.startsWith(values.only));

/**
 * Output of a program that must succeed, or must not; the other ends as an error that holds the output. The registry
 * lives in this process, so nothing here may wait synchronously.
 */
async function run(command, args, { cwd, env = {}, fails = false }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // Only for hanging programs: a build at install takes a minute on an idle machine, and many on a busy one.
    timeout: 3_600_000,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const [code, signal] = await once(child, "close");
  const output = `${stdout}${stderr}`;
  if ((code === 0) === fails)
    throw new Error(`${command} ${args.join(" ")} ended with ${code ?? signal}\n${output.slice(-3000)}`);
  return fails ? output : stdout;
}

/** An empty project that gets @cria packages from our registry, everything else from the usual one. */
function makeProject(name, registry) {
  const cwd = join(work, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ name, private: true, version: "1.0.0" }));
  writeFileSync(join(cwd, ".npmrc"), `@cria:registry=${registry}\n`);
  writeFileSync(join(cwd, "esm.mjs"), esmConsumer);
  writeFileSync(join(cwd, "cjs.cjs"), cjsConsumer);
  for (const extension of ["mts", "cts"]) writeFileSync(join(cwd, `types.${extension}`), typedConsumer(extension));
  return cwd;
}

const pnpm = (args, options) => run("npx", ["--yes", "pnpm@10.34.9", ...args], options);

/** Uses an installed project in each way; returns the model's output, which must be the same everywhere. */
async function useProject(cwd) {
  const said = [
    await run(process.execPath, ["esm.mjs", model], { cwd }),
    await run(process.execPath, ["cjs.cjs", model], { cwd }),
    // Like Node 20 before 20.19: require() gets the CommonJS build.
    await run(process.execPath, ["--no-experimental-require-module", "cjs.cjs", model], { cwd }),
  ].map((output) => JSON.parse(output));
  expect(said[0].text.length > 0 && said.every(({ text }) => text === said[0].text), JSON.stringify(said));
  expect(said.map(({ build }) => build).join() === "esm,esm,cjs", `builds: ${said.map(({ build }) => build)}`);
  const help = await run(join(cwd, "node_modules", ".bin", "cria"), ["--help"], { cwd });
  expect(help.includes("train"), `cria --help says ${help}`);
  return JSON.stringify(said[0].text);
}

async function checkTypes(cwd) {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const common = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2023,dom", "--types", "node"];
  await run(process.execPath, [tsc, ...common, "--module", "nodenext", "types.mts", "types.cts"], { cwd });
  const bundler = ["--module", "preserve", "--moduleResolution", "bundler"];
  await run(process.execPath, [tsc, ...common, ...bundler, "types.mts"], { cwd });
}

/** Programs that an installation needs, in a separate folder: a machine without compilers. */
async function makeBarePath() {
  const bin = join(work, "bin");
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "node"));
  for (const name of ["npm", "npx", "sh", "env", "uname"])
    symlinkSync((await run("sh", ["-c", `command -v ${name}`], { cwd: work })).trim(), join(bin, name));
  return bin;
}

/** Prints whether images can be used. */
const visionProgram = `import("@cria/engine").then(({ inspectVision }) => console.log(JSON.stringify(inspectVision())))`;

let registry;
let bare;
let newcomer = null;
try {
  let tarballs = [];
  await check("pack", () => {
    const { tarballs: packed } = values;
    tarballs = packed ? readdirSync(packed).map((name) => resolve(packed, name)) : packAll(join(work, "tarballs"));
    return tarballs.map((file) => `${basename(file)} ${Math.ceil(statSync(file).size / 1024)} KiB`).join(", ");
  });
  const nameOf = (file) => readPackedManifest(file).name;
  registry = await startRegistry(tarballs);
  const isForPlatform = (file) => /^@cria\/(native|vision)-/.test(nameOf(file));
  // Acts as a platform without a ready-made addon. A separate server, since pnpm caches answers by host.
  bare = await startRegistry(tarballs.filter((file) => !isForPlatform(file)));
  const cria = registry.tarballUrl("cria");
  const readyMade = `@cria/native-${process.platform}-${process.arch}`;
  // Package managers refuse another processor's addon unless it is an optional dependency.
  const isOurs = (file) => nameOf(file).endsWith(`-${process.platform}-${process.arch}`);
  const fitting = tarballs.filter((file) => !isForPlatform(file) || isOurs(file));

  await check("ready-made addon: CUDA kernels in it where nvcc is", async () => {
    const file = tarballs.find((tarball) => nameOf(tarball) === readyMade);
    const folder = join(work, "ready-made");
    mkdirSync(folder);
    await run("tar", ["-xzf", file, "-C", folder], { cwd: work });
    const library = join(folder, "package", "libcria-cuda.so");
    if (findNvcc() === null) {
      expect(!existsSync(library), "there is no nvcc here, so where does libcria-cuda.so come from?");
      return "no nvcc, no kernels";
    }
    expect(existsSync(library), "libcria-cuda.so is not packed");
    // With nothing but the C and C++ libraries: the driver is looked for when it is used.
    const needs = await run("ldd", ["-r", library], { cwd: work });
    expect(!/not found|undefined symbol/.test(needs), needs);
    return `libcria-cuda.so ${Math.ceil(statSync(library).size / 1024)} KiB`;
  });

  await check("license and README in every tarball", async () => {
    for (const file of tarballs) {
      const paths = (await run("tar", ["-tzf", file], { cwd: work })).split("\n");
      for (const path of ["package/LICENSE", "package/README.md"])
        expect(paths.includes(path), `${basename(file)} has no ${path}`);
    }
    return `${tarballs.length} tarballs`;
  });

  for (const file of tarballs) {
    const name = nameOf(file);
    // A package with only a program has no types.
    if (isForPlatform(file) || name === "create-cria") continue;
    await check(`publint, ${name}`, async () => {
      await run(join(root, "node_modules", ".bin", "publint"), ["run", file, "--strict"], { cwd: work });
    });
    await check(`types, ${name}`, async () => {
      // ESM, CommonJS and bundlers. The oldest resolution knows no exports maps, so no subpaths.
      const rules = ["--profile", "node16"];
      await run(join(root, "node_modules", ".bin", "attw"), [file, ...rules, "--format", "ascii", "--no-emoji"], {
        cwd: work,
      });
    });
  }

  const nodeTypes = "@types/node@20.19.25";
  const typescript = "typescript@5.9.3";
  await check("npm, tarballs: ESM, CommonJS, command line", async () => {
    const cwd = makeProject("npm-tarballs", registry.url);
    await run("npm", ["install", ...fitting, nodeTypes], { cwd });
    return useProject(cwd);
  });
  await check("npm, tarballs: types", () => checkTypes(join(work, "npm-tarballs")));
  for (const scripts of [[], ["--ignore-scripts"]])
    await check(`first steps, npm install${scripts.map((flag) => ` ${flag}`)}: demo, init, create`, async () => {
      const cwd = makeProject(`first${scripts.join("")}`, registry.url);
      await run("npm", ["install", ...scripts, ...fitting, nodeTypes, typescript], { cwd });
      const demo = JSON.parse(await run("npx", ["cria", "demo", "--steps", "3", "--json"], { cwd }));
      expect(demo.steps === 3, JSON.stringify(demo));
      await run("npx", ["cria", "init", "second"], { cwd });
      // Without a terminal there is no question.
      await run("npm", ["create", "cria"], { cwd });
      const named = await run("npm", ["create", "cria", "passed", "--", "--json", "--model", model], { cwd });
      expect(named.includes('"name":"passed"'), named);
      return useTask(join(cwd, "my-task"), run);
    });
  await check("init --model: fitted, checked, trained", async () => {
    const cwd = join(work, "first");
    cpSync(model, join(cwd, "my.gguf"));
    await run("npx", ["cria", "init", "fitted", "--model", "my.gguf"], { cwd });
    return useTask(join(cwd, "fitted"), run);
  });
  await check("init --from-mcp: checked, trained", async () => {
    const cwd = join(work, "first");
    const server = createRequire(join(root, "packages", "tools", "package.json")).resolve(
      "@modelcontextprotocol/server-everything/dist/index.js",
    );
    await run("npx", ["cria", "init", "mcp", "--from-mcp", `node ${server}`, "--tools", "echo,get-sum"], { cwd });
    return useTask(join(cwd, "mcp"), run);
  });
  await check("init --from-ai-sdk: checked, trained", async () => {
    const cwd = join(work, "first");
    await run("npm", ["install", "ai@6.0.322", "zod@4.6.7"], { cwd });
    writeFileSync(join(cwd, "agent.ts"), agentModule);
    await run("npx", ["cria", "init", "sdk", "--from-ai-sdk", "./agent.ts"], { cwd });
    return useTask(join(cwd, "sdk"), run);
  });
  await check("init inside of the repository: checked, trained, without an installation", async () => {
    const cwd = join(root, ".cache", "nightly-task");
    rmSync(cwd, { recursive: true, force: true });
    await run(process.execPath, [join(root, "apps", "trainer", "bin", "cria.mjs"), "init", cwd], { cwd: root });
    const said = await useTask(cwd, run);
    rmSync(cwd, { recursive: true, force: true });
    return said;
  });
  await check("newcomer: from an empty folder to a trained task", async () => {
    // Nothing is cached: as on the first day.
    const env = { npm_config_registry: registry.url, npm_config_cache: join(work, "npm-cache") };
    newcomer = await walk(join(work, "newcomer"), run, env);
    const seconds = newcomer.steps.reduce((sum, step) => sum + (step.seconds ?? 0), 0);
    expect(seconds < 600, `${Math.round(seconds)} s`);
    expect(newcomer.after > newcomer.before, `success ${newcomer.before} -> ${newcomer.after}`);
    return `${Math.round(seconds)} s, success ${newcomer.before.toFixed(3)} -> ${newcomer.after.toFixed(3)}`;
  });
  await check("npm, registry: `npm install @cria/engine` alone", async () => {
    const cwd = makeProject("npm-registry", registry.url);
    await run("npm", ["install", "@cria/engine"], { cwd });
    const program = `import("@cria/engine").then(({ getRuntimeInfo }) => console.log(getRuntimeInfo().devices.join()))`;
    const devices = (await run(process.execPath, ["-e", program], { cwd })).trim();
    expect(devices.includes("CPU"), `devices: ${devices}`);
    expect(!existsSync(join(cwd, "node_modules", "@cria", "native", "build")), "it was built, not taken ready-made");
    const vision = JSON.parse(await run(process.execPath, ["-e", visionProgram], { cwd }));
    expect(vision.problem === null && vision.library.includes("@cria/vision-"), JSON.stringify(vision));
    return `${devices}; ${(await run("du", ["-sh", "node_modules"], { cwd })).split("\t")[0]} installed`;
  });
  await check("pnpm: ESM, CommonJS, command line", async () => {
    const cwd = makeProject("pnpm", registry.url);
    const names = tarballs
      .filter((file) => !isForPlatform(file))
      .map(nameOf)
      .filter((name) => name.startsWith("@cria/") && name !== "@cria/native");
    await pnpm(["add", ...names, cria, nodeTypes], { cwd });
    return useProject(cwd);
  });
  await check("pnpm: types", () => checkTypes(join(work, "pnpm")));

  await check("npm, no ready-made addon: built at install", async () => {
    const cwd = makeProject("npm-build", bare.url);
    await run("npm", ["install", "@cria/engine", "@cria/tokenizer-delta"], { cwd });
    const program = `import("@cria/engine").then(({ getRuntimeInfo }) => console.log(getRuntimeInfo().llamaVersion))`;
    const vision = JSON.parse(await run(process.execPath, ["-e", visionProgram], { cwd }));
    expect(vision.remedy?.includes("npm install @cria/vision-"), JSON.stringify(vision));
    return `llama.cpp ${(await run(process.execPath, ["-e", program], { cwd })).trim()}`;
  });
  await check("npm, no ready-made addon, no compiler: says what to do", async () => {
    const cwd = makeProject("npm-bare", bare.url);
    const said = await run("npm", ["install", "@cria/engine"], {
      cwd,
      env: { PATH: await makeBarePath() },
      fails: true,
    });
    for (const part of [
      "this machine lacks CMake, a C++17 compiler",
      "make or ninja",
      "apt-get install g++ make cmake",
      "CRIA_SKIP_BUILD=1",
    ])
      expect(said.includes(part), `not said: ${part}\n${said}`);
    await run("npm", ["install", "@cria/engine"], { cwd, env: { PATH: join(work, "bin"), CRIA_SKIP_BUILD: "1" } });
    return "and CRIA_SKIP_BUILD=1 installs";
  });
  await check("pnpm, no ready-made addon, scripts not approved: loading says what to do", async () => {
    const cwd = makeProject("pnpm-bare", bare.url);
    await pnpm(["add", "@cria/engine"], { cwd });
    const program = `import("@cria/engine").then(({ getRuntimeInfo }) => getRuntimeInfo())`;
    const said = await run(process.execPath, ["-e", program], { cwd, fails: true });
    for (const part of ["not installed", "pnpm approve-builds", "scripts/build.mjs"])
      expect(said.includes(part), `not said: ${part}\n${said}`);
  });
} finally {
  registry?.close();
  bare?.close();
  rmSync(work, { recursive: true, force: true });
}
await report();

async function report() {
  const failures = checks.filter(({ ok }) => !ok);
  process.exitCode = failures.length > 0 ? 1 : 0;
  const result = {
    date: new Date().toISOString(),
    commit: (await run("git", ["rev-parse", "--short", "HEAD"], { cwd: root })).trim(),
    node: process.version,
    npm: (await run("npm", ["--version"], { cwd: root })).trim(),
    cpu: cpus()[0]?.model ?? "unknown",
    seconds: Math.round((performance.now() - started) / 1000),
    checks,
    newcomer,
  };
  console.log(`${checks.length - failures.length} passed, ${failures.length} failed`);
  if (!values.out) return;
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const rows = checks.map(
    ({ name, ok, seconds, note }) => `| ${name} | ${ok ? "ok" : "FAILED"} | ${seconds} | ${note.split("\n")[0]} |`,
  );
  writeFileSync(
    `${values.out}.md`,
    `# Packed and installed

\`node scripts/nightly/packages.mjs\`, ${result.date}, commit ${result.commit}, Node ${result.node}, npm ${result.npm}, pnpm 10.34.9,
${result.cpu}. **${failures.length} failures**, ${result.seconds} s.

| check | result | s | |
| --- | --- | --- | --- |
${rows.join("\n")}
${describeNewcomer()}`,
  );
}

/** The newcomer's log: every command with its time. */
function describeNewcomer() {
  if (!newcomer) return "";
  const { steps, before, after } = newcomer;
  const total = steps.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0);
  const rows = steps.map(({ command, seconds }) =>
    seconds === null ? `| ${command} | a person's own |` : `| \`${command}\` | ${seconds} |`,
  );
  return `
## From an empty folder to a task of one's own

Nothing is cached, no documentation but \`--help\`. **${Math.round(total)} s in all; held-out success ${before.toFixed(3)} before, ${after.toFixed(3)} after.**
The task: a shop's prices, with rows, a tool and feedback of its own (\`packages/newcomer.mjs\`).

| command | s |
| --- | --- |
${rows.join("\n")}
`;
}
