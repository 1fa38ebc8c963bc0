// Trains examples/ai-sdk-agent with seeds 1 to 3, draws the README's curve, and writes the results.
//   node --import tsx scripts/nightly/agent-example.mjs     (after `npm run bootstrap`; keep the machine idle)
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { drawSvgChart } from "../../apps/trainer/src/demo/draw-chart.ts";

const root = join(import.meta.dirname, "..", "..");
const example = join(root, "examples", "ai-sdk-agent");
const seeds = [1, 2, 3];
const colors = ["#1f77b4", "#2ca02c", "#d62728"];
const folder = mkdtempSync(join(tmpdir(), "cria-agent-example-"));

const runs = seeds.map((seed) => {
  const started = performance.now();
  execFileSync(join(example, "node_modules", ".bin", "tsx"), [join(example, "ai-sdk-agent.ts"), String(seed)], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const seconds = Math.round((performance.now() - started) / 1000);
  const lines = readFileSync(join(folder, "runs", "cria", `ai-sdk-agent-${seed}`, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  /** @type {{ x: number, y: number }[]} */
  const points = lines.flatMap((metrics) => {
    const y = metrics["val-core/task/reward/mean@1"];
    return y === undefined ? [] : [{ x: metrics["training/global_step"], y }];
  });
  const last = points.at(-1);
  if (!last) throw new Error(`seed ${seed}: the run has no validation`);
  return { seed, seconds, points, last };
});
rmSync(folder, { recursive: true });

const series = runs.map(({ seed, points }, i) => ({ name: `seed ${seed}`, color: colors[i], points }));
writeFileSync(
  join(root, "docs", "ai-sdk-agent.svg"),
  drawSvgChart("A ToolLoopAgent of the AI SDK: held-out success, sampled", series),
);
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
const rows = runs.map(
  ({ seed, seconds, points, last }) =>
    `| ${seed} | ${points[0].y.toFixed(3)} | ${last.y.toFixed(3)} | ${last.x} | ${seconds} s |`,
);
writeFileSync(
  join(import.meta.dirname, "agent-example.md"),
  `# examples/ai-sdk-agent

Sampled success on 128 held-out problems, before and after; validation every 10 steps and the start of the program are in the time.
Commit ${commit}, ${cpus().length} cores of ${cpus()[0].model}.

| seed | before | after | steps | time |
| ---- | ------ | ----- | ----- | ---- |
${rows.join("\n")}
`,
);
const failed = runs.filter(({ last, seconds }) => last.y < 0.9 || seconds > 300);
if (failed.length > 0)
  throw new Error(`below 0.90, or above 300 s: seeds ${failed.map(({ seed }) => seed).join(", ")}`);
