// Trains the demo, and holds its conversations again: steps in a random order, each from the checkpoint before it, a part of the
// held-out ones too. Every token id and every logprob must be equal. Needs a build.
//
//   node scripts/nightly/replay.mjs [--count 1000] [--seed <n>] [--run <folder of a demo>] [--out scripts/nightly/replay]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when a conversation differs.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readDump } from "../../packages/records/dist/index.js";
import { openReplay } from "../../packages/trainer/dist/index.js";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const cli = join(root, "apps", "trainer", "dist", "cli.js");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    run: { type: "string" },
    out: { type: "string" },
  },
});
/** Commands that are timed, each in a separate process. */
const TIMED = 10;
const work = mkdtempSync(join(tmpdir(), "cria-replay-"));
const random = makeRandom(Number(values.seed));
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
try {
  const run = values.run ?? trainDemo();
  const chosen = await choose(run, Number(values.count));
  const started = performance.now();
  const replay = await openReplay(run);
  const failures = [];
  let equal = 0;
  for (const [name, { lines, validation }] of shuffle([...chosen])) {
    const results = await replay.replay(lines, { validation });
    equal += results.filter((result) => result.equal).length;
    failures.push(...results.filter((result) => !result.equal).map((result) => ({ dump: name, ...result })));
  }
  const trained = replay.trainedSteps;
  await replay.close();
  const seconds = (performance.now() - started) / 1000;
  const commands = timeCommands(run, chosen);
  const all = [...chosen.values()].flatMap(({ lines }) => lines);
  report({
    date: new Date().toISOString(),
    commit,
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    seed: Number(values.seed),
    dumps: chosen.size,
    conversations: all.length,
    equal,
    tokens: all.reduce((sum, line) => sum + line.token_ids.length, 0),
    sampled: all.reduce((sum, line) => sum + line.response_mask.reduce((a, b) => a + b, 0), 0),
    steps_trained_again: trained,
    seconds: round(seconds),
    one_conversation_by_command: commands,
    run_megabytes: round(sizeOf(run) / 1e6),
    checkpoints_megabytes: round(sizeOf(join(run, "checkpoints")) / 1e6),
    failures,
  });
  process.exitCode = equal === all.length && all.length === Number(values.count) ? 0 : 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function trainDemo() {
  const demo = spawnSync(process.execPath, [cli, "demo"], { cwd: work, encoding: "utf8" });
  if (demo.status !== 0) throw new Error(`cria demo failed: ${demo.stderr}`);
  return join(work, "runs", "demo");
}

/** Conversations of all dumps, as many of each as it takes, at random. */
async function choose(run, count) {
  const names = ["rollouts", "validation"].flatMap((folder) =>
    (existsSync(join(run, folder)) ? readdirSync(join(run, folder)) : [])
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => join(folder, name)),
  );
  const chosen = new Map();
  let left = count;
  for (const [i, name] of names.entries()) {
    const lines = [];
    for await (const line of readDump(join(run, name))) if (line.error === null) lines.push(line);
    const share = Math.ceil(left / (names.length - i));
    chosen.set(name, { lines: shuffle(lines).slice(0, share), validation: name.startsWith("validation") });
    left -= Math.min(share, lines.length);
  }
  return chosen;
}

function timeCommands(run, chosen) {
  const steps = shuffle([...chosen.values()].filter(({ validation }) => !validation)).slice(0, TIMED);
  const seconds = steps.map(({ lines: [line] }) => {
    const started = performance.now();
    const words = ["replay", run, "--step", String(line.step), "--trajectory", `${line.uid}#${line.sample}`, "--json"];
    const { status, stderr } = spawnSync(process.execPath, [cli, ...words], { encoding: "utf8" });
    if (status !== 0) throw new Error(`cria ${words.join(" ")} failed: ${stderr}`);
    return (performance.now() - started) / 1000;
  });
  seconds.sort((a, b) => a - b);
  return { median_seconds: round(seconds[Math.floor(seconds.length / 2)]), longest_seconds: round(seconds.at(-1)) };
}

function sizeOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

function report(result) {
  console.log(JSON.stringify(result, null, 2));
  if (!values.out) return;
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const { median_seconds, longest_seconds } = result.one_conversation_by_command;
  writeFileSync(
    `${values.out}.md`,
    `# Replays of the demo's run

${result.equal} of ${result.conversations} conversations (${result.dumps} dumps, ${result.sampled} sampled tokens) came out with equal token ids
and equal logprobs, bit for bit, in ${result.seconds} s: ${result.steps_trained_again} steps were trained again from the checkpoints before them.
One conversation by \`cria replay\` took ${median_seconds} s in the median of ${TIMED} steps, ${longest_seconds} s at most. The run folder has
${result.run_megabytes} MB, ${result.checkpoints_megabytes} MB of them checkpoints.

${result.date.slice(0, 10)}, commit ${result.commit}, ${result.cpu}, Node ${result.node}, seed ${result.seed}.
`,
  );
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function shuffle(items) {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j], items[i]];
  }
  return items;
}

/** mulberry32 */
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
