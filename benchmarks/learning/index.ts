/**
 * Ways to learn against plain GRPO, at equal sampled tokens: how many tokens a policy samples until 0.5 and 0.9 of the
 * held-out rows are solved, greedily, on tasks of which most are hard for GRPO, and the curve on the way. The teacher is
 * an adapter that GRPO trained with larger groups and another seed, or one of more demonstrations.
 * `--only` chooses tasks: a task is measured with all of its methods, so that its ratios come from one run. Curves are
 * kept for the commit: if it ended early, the same command goes on where it was.
 * `CRIA_LEARNING_SEEDS` (5) makes it shorter, and `CRIA_LEARNING_AT_ONCE` (1) lets several runs go side by side.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { writeLines } from "../lines.js";
import { median } from "../measure.js";
import type { Measured } from "../row.js";
import { averageSuccess, type Curve, findTokens } from "./curve.js";
import { keepCurve } from "./keep-curve.js";
import { type Method, methods } from "./methods.js";
import { type LearningRow, packCurves } from "./present.js";
import { codeGame } from "./tasks/code-game.js";
import { distraction } from "./tasks/distraction.js";
import { AT_ONCE, type LearningTask, type Teacher } from "./tasks/learning-task.js";
import { twoPlayers } from "./tasks/nim.js";
import { path } from "./tasks/path.js";
import { toolChoice } from "./tasks/tool-choice.js";

const SEEDS = Number(process.env.CRIA_LEARNING_SEEDS ?? 5);
const SHARES = [0.5, 0.9];
/** Right conversations, which methods with {examples} learn from beside rewards. */
const EXAMPLES = 16;

const tasks: readonly LearningTask[] = [path, distraction, codeGame, twoPlayers, toolChoice];
const grpo: Method = { name: "GRPO", overrides: [] };

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: LearningRow[] = [];
  for (const task of tasks) {
    const chosen = [grpo, ...methods.filter((method) => isFor(task, method))];
    if (!chosen.some((method) => includes(describe(task, method)))) continue;
    const missing = await task.findMissing?.();
    if (missing) log(`${task.name}: ${missing}`);
    else rows.push(...(await measure(task, chosen, log)));
  }
  return { rows };
}

/** True if a method is tried on a task, which has what its overrides name. */
function isFor(task: LearningTask, { name, tasks: own, overrides }: Method): boolean {
  const names = (what: string) => overrides.some((text) => text.includes(what));
  if (names("{examples}") && task.examples === undefined) return false;
  if (names("{teacher}") && task.teacher === null) return false;
  return task.methods?.includes(name) ?? own?.includes(task.name) ?? true;
}

const describe = (task: LearningTask, method: Method) => `${task.name}: ${method.name}`;

async function measure(
  task: LearningTask,
  chosen: readonly Method[],
  log: BenchmarkOptions["log"],
): Promise<LearningRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "cria-learning-"));
  try {
    const made = await task.prepare();
    const teacher = join(folder, "teacher.gguf");
    const examples = join(folder, "examples.jsonl");
    if (task.examples) writeLines(examples, await task.examples(EXAMPLES));
    if (task.teacher) await makeTeacher(task, task.teacher, { folder, made, adapter: teacher }, log);
    const curves = new Map(chosen.map(({ name }) => [name, new Array<Curve>(SEEDS)]));
    const seeds = Array.from({ length: SEEDS }, (_, i) => i + 1);
    const runs = seeds.flatMap((seed) => chosen.map((method) => ({ seed, method })));
    const learnNext = async (): Promise<void> => {
      const run = runs.shift();
      if (!run) return;
      const { seed, method } = run;
      const given = method.overrides.map((text) => text.replace("{teacher}", teacher).replace("{examples}", examples));
      const { tokens, steps, every } = task;
      const options = { folder, seed, tokens, steps, every, overrides: [...made, ...given] };
      const curve = await keepCurve(task, [method.name, ...method.overrides], options);
      curves.get(method.name)![seed - 1] = curve;
      const found = SHARES.map((share) => findTokens(curve, share));
      const last = curve.at(-1)!;
      log(`${describe(task, method)}, seed ${seed}: ${found.join(", ")} tokens, ${last.success} after ${last.tokens}`);
      return learnNext();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, learnNext));
    return chosen.flatMap((method) => compare(task, method, curves.get(method.name)!, curves.get(grpo.name)!));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeTeacher(
  task: LearningTask,
  source: Teacher,
  { folder, made, adapter }: { folder: string; made: readonly string[]; adapter: string },
  log: BenchmarkOptions["log"],
): Promise<void> {
  const tell = (success: number) => log(`${task.name}: the teacher solves ${success.toFixed(2)}`);
  const options = { folder, seed: 1000, tokens: Number.POSITIVE_INFINITY, every: Number.POSITIVE_INFINITY };
  if ("write" in source) {
    await source.write(adapter);
    const overrides = [...made, `actor_rollout_ref.model.lora_adapter_path=${adapter}`];
    // The first point is measured before the step.
    tell((await task.learn({ ...options, steps: 1, overrides }))[0]!.success);
    return;
  }
  const large = [
    "data.train_batch_size=16",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.rollout.n=8",
  ];
  const trained = { ...options, steps: source.steps, overrides: [...made, ...large], adapter };
  tell((await keepCurve(task, ["teacher"], trained)).at(-1)!.success);
}

/** A row for each metric; that of the mean success has the curves. */
function compare(task: LearningTask, method: Method, own: readonly Curve[], plain: readonly Curve[]): LearningRow[] {
  const add = (metric: string, pick: (curve: Curve) => number, curves?: readonly Curve[]): LearningRow => ({
    case: describe(task, method),
    metric,
    ours: median(own.map(pick)),
    peers: { GRPO: median(plain.map(pick)) },
    seeds: { ours: own.map(pick), GRPO: plain.map(pick) },
    ...(curves ? { curves: packCurves(curves), budget: task.tokens } : {}),
    target: null,
    met: null,
  });
  return [
    ...SHARES.map((share) =>
      add(`tokens sampled until ${share} of the held-out rows are solved`, (curve) => findTokens(curve, share)),
    ),
    add("mean success by sampled tokens", (curve) => averageSuccess(curve, task.tokens), own),
    add("success at the end", (curve) => curve.at(-1)!.success),
  ];
}
