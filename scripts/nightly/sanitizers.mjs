// The addon under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer (the engine's tests, then mixed load),
// and the engine without Node under ThreadSanitizer (native/test/engine_races.cc). Needs Linux, GCC with its
// sanitizers, setarch and addr2line; everything else it bootstraps and builds.
//
//   node scripts/nightly/sanitizers.mjs [--minutes 2] [--only thread] [--out scripts/nightly/sanitizers]
//
// --only takes the checks whose names begin with its text. With --out it writes <out>.json and <out>.md. The exit code
// is 1 when anything fails.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { collectChecks } from "./run-checks.mjs";
import { readReports } from "./sanitizers/read-reports.mjs";

const root = join(import.meta.dirname, "..", "..");
const native = join(root, "native");
const model = join(root, "models", "cria-tiny.gguf");
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    only: { type: "string", default: "" },
    out: { type: "string" },
  },
});
const started = performance.now();
const { checks, check } = collectChecks((name) => name.startsWith(values.only));
const compiler = process.env.CXX ?? "g++";
const firstLine = (command, args) => spawnSync(command, args, { encoding: "utf8" }).stdout?.split("\n")[0] ?? "";
/** The library's path; only its name when this compiler has none. */
const asanLibrary = firstLine(compiler, ["-print-file-name=libasan.so"]);
const work = mkdtempSync(join(tmpdir(), "cria-sanitizers-"));
let isReady = false;
/** Tests of the engine that say nothing here. */
const WITHOUT_SANITIZERS = [
  "soak.test.ts", // the mixed load is a separate check, longer than this test's five seconds
  "cpu-kernel.test.ts", // sets the environment of its process, but here test files share one
  "out-of-memory.test.ts", // puts a failing allocator in place of the sanitizer's
];

requireTools();
try {
  await runChecks();
} finally {
  rmSync(work, { recursive: true, force: true });
}
report();

function requireTools() {
  const missing = [
    [process.platform === "linux", "Linux"],
    [asanLibrary.includes("/"), `${compiler} with libasan (GCC's sanitizers)`],
    [firstLine(compiler, ["-print-file-name=libtsan.so"]).includes("/"), `${compiler} with libtsan (GCC's sanitizers)`],
    [firstLine("setarch", ["--version"]), "setarch (util-linux)"],
    [firstLine("addr2line", ["--version"]), "addr2line (binutils)"],
  ].flatMap(([there, name]) => (there ? [] : [name]));
  if (missing.length === 0) return;
  console.error(`sanitizers: missing: ${missing.join(", ")}`);
  process.exit(1);
}

async function runChecks() {
  await check("address, undefined, leak: build", async () => {
    await bootstrap();
    return build("address,undefined");
  });
  await check("address, undefined, leak: tests of the engine", () =>
    underAddressSanitizer("tests", async (env) => {
      const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
      const summary = join(work, "tests.json");
      const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${summary}`];
      // Threads of one process, which then ends by itself: LeakSanitizer looks at exit, and vitest kills its processes.
      const pool = ["--pool=threads", "--poolOptions.threads.maxThreads=2", "--testTimeout=300000"];
      const excluded = WITHOUT_SANITIZERS.map((file) => `--exclude=**/${file}`);
      const args = [vitest, "run", "packages/engine", ...excluded, ...pool, ...reporters];
      await run(process.execPath, args, { env });
      const { numPassedTests, numPendingTests } = JSON.parse(readFileSync(summary, "utf8"));
      return `${numPassedTests} tests${numPendingTests ? `, ${numPendingTests} skipped` : ""}`;
    }),
  );
  await check("address, undefined, leak: mixed load", () =>
    underAddressSanitizer("load", async (env) => {
      const soak = join(root, "scripts", "nightly", "soak.mjs");
      // Its own allocator keeps freed memory in quarantine, so RSS says nothing here; LeakSanitizer does.
      const output = await run(process.execPath, [soak, "--minutes", values.minutes, "--ignore-rss"], { env });
      const { counts, checks: compared } = JSON.parse(output.slice(output.indexOf("\n{") + 1));
      return `${counts.generations} requests, ${counts.trainSteps} steps, ${compared.replayedRequests} replayed`;
    }),
  );
  await check("thread: build", async () => {
    await bootstrap();
    return build("thread");
  });
  await check("thread: kernels, scheduler, trainer, job thread", async () => {
    // It saves adapters next to the model.
    cpSync(model, join(work, "model.gguf"));
    const program = join(native, "build-thread", "Release", "engine_races");
    const seconds = String(60 * Number(values.minutes));
    // Without address randomisation: newer kernels use a range that ThreadSanitizer of GCC 12 does not know.
    const output = await run("setarch", ["-R", program, join(work, "model.gguf"), seconds], {
      env: { TSAN_OPTIONS: "halt_on_error=1:second_deadlock_stack=1" },
    });
    const counts = JSON.parse(output);
    return `${counts.requests} requests, ${counts.aborted} aborted, ${counts.acceptedDrafts} accepted drafts; ${counts.steps} steps, ${counts.abortedJobs} aborted; ${counts.versions} versions, ${counts.takeovers} takeovers`;
  });
}

/** Standard output of a program that must succeed; otherwise the error has its output. */
async function run(command, args, { cwd = root, env = {}, minutes = 30 } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: minutes * 60_000,
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
  if (code !== 0)
    throw new Error(
      `${command} ${args.join(" ")} ended with ${code ?? signal}\n${stderr.slice(0, 6000)}\n${stdout.slice(-6000)}`,
    );
  return stdout;
}

/** Dependencies, and the packages' own builds, which the mixed load and tests' children import; once. */
async function bootstrap() {
  if (isReady) return;
  await run(process.execPath, [join(root, "scripts", "bootstrap.mjs")], { minutes: 60 });
  isReady = true;
}

async function build(sanitize) {
  const output = await run(process.execPath, [join(native, "scripts", "build.mjs")], {
    cwd: native,
    env: { CRIA_SANITIZE: sanitize },
    minutes: 60,
  });
  return output.trim().split("\n").at(-1);
}

/**
 * Runs `body` with the environment for a Node that loads the sanitized addon. Sanitizer reports of any of its processes
 * fail the check, but exit codes do not: tests expect some of their children to die.
 */
async function underAddressSanitizer(name, body) {
  const folder = join(work, name);
  mkdirSync(folder);
  const log = (file) => `log_path=${join(folder, file)}:symbolize=0:abort_on_error=1`;
  let note = "";
  let failure = "";
  try {
    note = await body({
      CRIA_ADDON: join(native, "build-address-undefined", "Release", "cria.node"),
      // Node is not instrumented, so the sanitizer's library must come first.
      LD_PRELOAD: asanLibrary,
      // exitcode=0: leaks, which Node has too, do not change a program's exit code. intercept_tls_get_addr=0:
      // LeakSanitizer guesses the thread-locals of libraries that are loaded later, and dies of a wrong guess for
      // CUDA's runtime. Without it fewer places are searched, so more would leak.
      ASAN_OPTIONS: `${log("address")}:detect_leaks=1:exitcode=0:handle_abort=1:intercept_tls_get_addr=0`,
      UBSAN_OPTIONS: `${log("undefined")}:print_stacktrace=1`,
    });
  } catch (error) {
    failure = error.message;
  }
  const { findings, foreignLeaks } = readReports(folder);
  if (failure || findings.length > 0)
    throw new Error(
      [`${findings.length} findings`, ...findings.slice(0, 20).map((text) => text.slice(0, 4000)), failure].join("\n"),
    );
  return `${note}; ${foreignLeaks} leaks of Node and V8 left aside`;
}

function report() {
  const failures = checks.filter(({ ok }) => !ok);
  process.exitCode = failures.length > 0 ? 1 : 0;
  const result = {
    date: new Date().toISOString(),
    commit: firstLine("git", ["-C", root, "rev-parse", "--short", "HEAD"]),
    node: process.version,
    compiler: firstLine(compiler, ["--version"]),
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
    seconds: Math.round((performance.now() - started) / 1000),
    checks,
  };
  if (!values.out) return;
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const rows = checks.map(
    ({ name, ok, seconds, note }) => `| ${name} | ${ok ? "ok" : "FAILED"} | ${seconds} | ${note.split("\n")[0]} |`,
  );
  writeFileSync(
    `${values.out}.md`,
    `# Sanitizers

\`node scripts/nightly/sanitizers.mjs --minutes ${values.minutes}\`, ${result.date}, commit ${result.commit}, Node ${result.node}, ${result.compiler},
${result.cpu}. **${failures.length} failures**, ${result.seconds} s.

| check | result | s | |
| --- | --- | --- | --- |
${rows.join("\n")}

Not instrumented: Node and llama.cpp's prebuilt libraries. Leaks count where the addon or llama.cpp allocated. No report is
suppressed. ggml's barriers are invisible to ThreadSanitizer: the engine runs on one thread of ggml's there (beside those of its
clients, scheduler and jobs), and the parts of our kernels run on threads without ggml.
`,
  );
}
