// Mixed load on the embedded policy: conversations that join, fork, are aborted, evicted and leave, scoring, training, flushes,
// saved and restored states. Compares logprobs with undisturbed runs and watches memory. The driver is
// packages/engine/src/testing/soak, which the tests run for a few seconds. Needs a build.
//
//   node --expose-gc scripts/nightly/soak.mjs [--minutes 30] [--seed 1] [--threads 1] [--ignore-rss] [--out scripts/nightly/soak]
//
// --ignore-rss: growth of memory is no failure. With --out it writes <out>.json, <out>.md and <out>.svg (RSS over time). The exit code is 1 when anything fails.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { runSoak } from "../../packages/engine/dist/testing.js";
import { drawMemory } from "./soak/draw-memory.mjs";

const root = join(import.meta.dirname, "..", "..");
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    seed: { type: "string", default: "1" },
    threads: { type: "string", default: "1" },
    "ignore-rss": { type: "boolean", default: false },
    out: { type: "string" },
  },
});
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
const report = await runSoak({
  path: join(root, "models", "cria-tiny.gguf"),
  seconds: 60 * Number(values.minutes),
  seed: Number(values.seed),
  threads: Number(values.threads),
  ...(values["ignore-rss"] ? { maxGrowth: Number.POSITIVE_INFINITY } : {}),
  onEpoch: (epoch, { counts, checks, failures, memory }) => {
    if (epoch % 10 !== 0) return;
    console.log(
      `${memory.seconds.toFixed(0)} s: ${counts.generations} generations, ${counts.trainSteps} steps, ` +
        `${checks.scoredTokens} tokens scored, ${checks.replayedRequests} replayed, RSS ${mib(memory.rss)}, ${failures.length} failures`,
    );
  },
});
const result = {
  date: new Date().toISOString(),
  commit,
  node: process.version,
  cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
  ...report,
};
const { counts, checks, scheduler, memory, failures } = result;
console.log(
  JSON.stringify({ ...result, memory: memory.trend, failures: failures.map((text) => text.slice(0, 2000)) }, null, 2),
);
process.exitCode = failures.length > 0 ? 1 : 0;
if (values.out) {
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(`${values.out}.svg`, drawMemory(memory.samples, memory.trend));
  writeFileSync(`${values.out}.md`, describe(`${basename(values.out)}.svg`));
}

function describe(picture) {
  const { trend } = memory;
  return `# Mixed load

\`node --expose-gc scripts/nightly/soak.mjs --minutes ${values.minutes} --seed ${values.seed} --threads ${values.threads}\`, ${result.date}, commit ${result.commit},
Node ${result.node}, ${result.cpu}. **${failures.length} failures**, ${result.seconds.toFixed(0)} s.

The embedded policy with a LoRA adapter, 4 KV slots of 512 tokens; the weights changed ${result.epochs} times meanwhile.

| what happened | |
| --- | --- |
| conversations, forks of them, sent again whole or in part | ${counts.conversations}, ${counts.forks}, ${counts.restarts} |
| requests, of them aborted, of them disposed in flight | ${counts.generations}, ${counts.aborted}, ${counts.disposedInFlight} |
| tokens sampled, evaluated, reused | ${counts.sampledTokens}, ${scheduler.prefillTokens}, ${scheduler.reusedTokens} |
| evictions, restored from memory, tokens evaluated again | ${scheduler.evictions}, ${scheduler.restores}, ${scheduler.recomputedTokens} |
| optimizer steps, refused or aborted; of a critic | ${counts.trainSteps}, ${counts.trainRefused}; ${counts.criticSteps} |
| flushes, states restored, adapters saved and loaded | ${counts.flushes}, ${counts.statesRestored}, ${counts.adaptersSaved} |
| calls that must be refused | ${counts.refused} |

| what was checked | |
| --- | --- |
| requests generated again alone, each from nothing: tokens, logprobs, text equal bit for bit | ${checks.replayedRequests} (${checks.replayedTokens} tokens) |
| sampled tokens against score(): largest difference, nats | ${checks.scoredTokens}: ${checks.worstDifference.toExponential(1)} |
| sequences, KV slots, requests, saved bytes left at the end | ${scheduler.sequences}, ${scheduler.residentSequences}, ${scheduler.requests}, ${scheduler.swappedBytes} |
| unhandled rejections | ${failures.filter((text) => text.startsWith("unhandled")).length} |
| RSS after the warm-up (${trend?.warmUpSeconds.toFixed(0)} s), and at the end | ${trend ? `${mib(trend.first)}, ${mib(trend.last)} (${(trend.slope / 2 ** 20).toFixed(2)} MiB an hour)` : "too short to say"} |

![RSS over time](${picture})
${failures.map((text) => `\n- ${text.split("\n")[0].slice(0, 300)}`).join("")}
`;
}
