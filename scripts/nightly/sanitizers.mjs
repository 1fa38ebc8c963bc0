// The addon under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer (the engine's tests, then mixed load), and
// the engine without Node under ThreadSanitizer (native/test/engine_races.cc). Needs GCC's or Clang's sanitizers and a build.
//
//   node scripts/nightly/sanitizers.mjs [--minutes 2] [--only thread] [--out scripts/nightly/sanitizers]
//
// --only takes the checks whose name begins so. With --out it writes <out>.json and <out>.md. The exit code is 1 when anything fails.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { collectChecks } from "./run-checks.mjs";

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

/** Standard output of a program that must succeed; what it said is in the error otherwise. */
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
      `${command} ${args.join(" ")} ended with ${code ?? signal}\n${stderr.slice(0, 6000)}\n${stdout.slice(-3000)}`,
    );
  return stdout;
}

const build = (sanitize) =>
  run(process.execPath, [join(native, "scripts", "build.mjs")], {
    cwd: native,
    env: { CRIA_SANITIZE: sanitize },
    minutes: 60,
  });

/** Node is not instrumented, so the sanitizer's library must come first; what Node and V8 keep until the end is not ours. */
async function sanitizedNode() {
  const library = (await run(process.env.CXX ?? "g++", ["-print-file-name=libasan.so"])).trim();
  return {
    CRIA_ADDON: join(native, "build-address-undefined", "Release", "cria.node"),
    LD_PRELOAD: library,
    ASAN_OPTIONS: "detect_leaks=1:exitcode=99",
    LSAN_OPTIONS: `suppressions=${join(native, "test", "leaks.supp")}:print_suppressions=0`,
    UBSAN_OPTIONS: "print_stacktrace=1",
  };
}

await check("address, undefined, leak: build", async () =>
  (await build("address,undefined")).trim().split("\n").at(-1),
);
await check("address, undefined, leak: tests of the engine", async () => {
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const report = ["--reporter=json", "--testTimeout=300000"];
  const output = await run(process.execPath, [vitest, "run", "packages/engine", ...report], {
    env: await sanitizedNode(),
  });
  const { numPassedTests, numFailedTests } = JSON.parse(output.slice(output.indexOf('{"num')));
  if (numFailedTests > 0) throw new Error(output);
  return `${numPassedTests} tests`;
});
await check("address, undefined, leak: mixed load", async () => {
  const soak = join(root, "scripts", "nightly", "soak.mjs");
  // Its own allocator keeps freed memory in quarantine, so RSS says nothing here; LeakSanitizer does.
  const output = await run(process.execPath, [soak, "--minutes", values.minutes, "--ignore-rss"], {
    env: await sanitizedNode(),
  });
  const { counts, checks: compared } = JSON.parse(output.slice(output.indexOf("\n{") + 1));
  return `${counts.generations} requests, ${counts.trainSteps} steps, ${compared.replayedRequests} replayed`;
});
await check("thread: build", async () => (await build("thread")).trim().split("\n").at(-1));
await check("thread: scheduler, trainer, job thread", async () => {
  const work = mkdtempSync(join(tmpdir(), "cria-races-"));
  try {
    // Beside the model it saves adapters.
    cpSync(model, join(work, "model.gguf"));
    const program = join(native, "build-thread", "Release", "engine_races");
    const suppressions = join(native, "test", "races.supp");
    const env = { TSAN_OPTIONS: `suppressions=${suppressions}:halt_on_error=1:second_deadlock_stack=1` };
    // Without address randomisation, whose range newer kernels have and ThreadSanitizer of GCC 12 does not know.
    const output = await run(
      "setarch",
      ["-R", program, join(work, "model.gguf"), String(30 * Number(values.minutes))],
      { env },
    );
    return output.trim();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
await report();

async function report() {
  const failures = checks.filter(({ ok }) => !ok);
  process.exitCode = failures.length > 0 ? 1 : 0;
  const result = {
    date: new Date().toISOString(),
    commit: (await run("git", ["rev-parse", "--short", "HEAD"])).trim(),
    node: process.version,
    compiler: (await run(process.env.CXX ?? "g++", ["--version"])).split("\n")[0],
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

Not instrumented: Node and llama.cpp's prebuilt libraries. Leaks are suppressed where Node or V8 allocated them
(\`native/test/leaks.supp\`), races where llama.cpp's libraries stand on top of the stack (\`native/test/races.supp\`).
`,
  );
}
