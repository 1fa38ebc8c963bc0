// `cria serve` with the embedded policy under 200 sessions at once, in turn with calm clients: equal answers, nothing
// left in the engine, and an event loop that is never late. The clients are serve-clients.mjs, in a separate process.
//
//   node scripts/nightly/serve-soak.mjs [--rounds 5] [--sessions 200] [--sources]
//
// Writes serve-soak.json next to this file. Exits with 1 when anything is wrong. Keep the machine idle. Build first, or
// let it run the sources.
import { execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs, promisify } from "node:util";

const here = import.meta.dirname;
const root = join(here, "..", "..");
const run = promisify(execFile);
const { values } = parseArgs({
  options: { rounds: { type: "string" }, sessions: { type: "string" }, sources: { type: "boolean" } },
});
const rounds = Number(values.rounds ?? 5);
const sessions = Number(values.sessions ?? 200);
const program = values.sources
  ? ["--conditions=cria-source", "--import", "tsx", join(root, "apps", "trainer", "src", "cli.ts")]
  : [join(root, "apps", "trainer", "bin", "cria.mjs")];
/** Milliseconds that the 99th percentile of the event loop's delay must stay below. */
const LOOP_BOUND_MS = 50;

/** Starts the server, lets the clients at it, reads its metrics and stops it. */
async function serveTo(clients) {
  const words = [
    "serve",
    "--port",
    "0",
    "--parallel",
    "16",
    "--ctx",
    "256",
    "--threads",
    "1",
    "--deterministic",
    "--json",
  ];
  const server = spawn(process.execPath, [...program, ...words], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  /** @type {Promise<number | null>} */
  const exited = new Promise((resolve) => server.once("exit", resolve));
  const readUrl = async () => {
    for await (const line of createInterface({ input: server.stdout })) return JSON.parse(line).url;
    throw new Error(`cria serve ended with ${await exited}`);
  };
  const url = await readUrl();
  const given = JSON.stringify({ url, sessions, turns: 2, maxTokens: 24, ...clients });
  const started = performance.now();
  const { stdout } = await run(process.execPath, [join(here, "serve-clients.mjs"), given], { maxBuffer: 2 ** 28 });
  const seconds = (performance.now() - started) / 1000;
  const read = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return (name) => Number(new RegExp(`^cria_${name} (.+)$`, "m").exec(text)?.[1]);
  };
  let metric = await read();
  for (let i = 0; i < 100 && metric("requests_running") + metric("requests_waiting") > 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    metric = await read();
  }
  const names = ["requests_running", "requests_waiting", "sessions", "engine_requests", "engine_sequences"];
  const left = Object.fromEntries(names.map((name) => [name, metric(name)]));
  const loopMs = metric("event_loop_delay_p99_seconds") * 1000;
  server.kill("SIGTERM");
  const code = await exited;
  return { ...JSON.parse(stdout), seconds, left, loopMs, code };
}

const problems = [];
const results = [];
for (let seed = 1; seed <= rounds; seed++) {
  const calm = await serveTo({ calm: true, atOnce: 8, seed });
  const wild = await serveTo({ calm: false, atOnce: sessions, seed });
  const wrong = Object.keys(calm.answers).filter(
    (session) => JSON.stringify(calm.answers[session]) !== JSON.stringify(wild.answers[session]),
  );
  // Well-formed requests of strangers begin conversations that are kept.
  const { engine_sequences, ...none } = wild.left;
  const leaks = [
    ...Object.entries(none).filter(([, count]) => count !== 0),
    ...(engine_sequences > (wild.counts.strangers["200"] ?? 0) ? [["engine_sequences", engine_sequences]] : []),
  ];
  if (wrong.length > 0) problems.push(`seed ${seed}: other answers in ${wrong.slice(0, 5)}`);
  if (leaks.length > 0) problems.push(`seed ${seed}: left over: ${JSON.stringify(leaks)}`);
  if (!(wild.loopMs < LOOP_BOUND_MS)) problems.push(`seed ${seed}: event loop p99 ${wild.loopMs.toFixed(1)} ms`);
  if (wild.code !== 0 || calm.code !== 0) problems.push(`seed ${seed}: exit codes ${calm.code}, ${wild.code}`);
  const result = {
    seed,
    answers: Object.values(wild.answers).flat().length,
    wrong_answers: wrong.length,
    ...wild.counts,
    event_loop_p99_ms: { calm: Number(calm.loopMs.toFixed(1)), wild: Number(wild.loopMs.toFixed(1)) },
    left: wild.left,
    seconds: Number(wild.seconds.toFixed(1)),
  };
  results.push(result);
  console.log(JSON.stringify(result));
}
const load = Number(loadavg()[0].toFixed(1));
const machine = { cpu: cpus()[0]?.model, cores: cpus().length, load, node: process.version };
writeFileSync(
  join(here, "serve-soak.json"),
  `${JSON.stringify({ sessions, machine, rounds: results, problems }, null, 2)}\n`,
);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
