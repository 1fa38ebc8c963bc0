/**
 * Ways to learn against plain GRPO, at equal sampled tokens: how many tokens a policy samples until 0.5 and 0.9 of the
 * held-out rows are solved, greedily, on tasks of which most are hard for GRPO. The teacher is an adapter that GRPO
 * trained with larger groups and another seed, or the policy itself with the answer as a hint. `CRIA_LEARNING_SEEDS` (5) makes it shorter.
 */
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import type { Measured } from "../row.js";
import { type Method, methods } from "./methods.js";
import type { LearningRow } from "./present.js";
import { codeGame } from "./tasks/code-game.js";
import { distraction } from "./tasks/distraction.js";
import type { Learned, LearningTask } from "./tasks/learning-task.js";
import { twoPlayers } from "./tasks/nim.js";
import { path } from "./tasks/path.js";
import { toolChoice } from "./tasks/tool-choice.js";

const SEEDS = Number(process.env.CRIA_LEARNING_SEEDS ?? 5);
const SHARES = [0.5, 0.9];
/** Right conversations, which methods with {examples} learn from beside rewards. */
const EXAMPLES = 16;
/** Steps between validations, where a task does not say it. */
const EVERY = 5;

const tasks: readonly LearningTask[] = [path, distraction, codeGame, twoPlayers, toolChoice];
const grpo: Method = { name: "GRPO", overrides: [] };

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: LearningRow[] = [];
  for (const task of tasks) {
    const chosen = methods.filter((method) => isFor(task, method) && includes(describe(task, method)));
    if (chosen.length === 0) continue;
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
  if (names("{teacher}") && task.teacherSteps === null) return false;
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
    if (task.examples)
      writeFileSync(
        examples,
        (await task.examples(EXAMPLES)).map((example) => `${JSON.stringify(example)}\n`).join(""),
      );
    if (task.teacherSteps !== null) await makeTeacher(task, folder, made, teacher, log);
    // Methods take turns, so that a change of the machine meets all.
    const runs = new Map<string, Learned[]>();
    for (let seed = 1; seed <= SEEDS; seed++)
      for (const { name, overrides: own } of [grpo, ...chosen]) {
        const given = own.map((text) => text.replace("{teacher}", teacher).replace("{examples}", examples));
        const overrides = [...made, ...given];
        const learned = await task.learn({ folder, seed, steps: task.steps, overrides, every: task.every ?? EVERY });
        runs.set(name, [...(runs.get(name) ?? []), learned]);
        const found = SHARES.map((share) => findTokens(learned, share));
        log(
          `${task.name}: ${name}, seed ${seed}: ${found.join(", ")} tokens, ${learned.points.at(-1)!.success.toFixed(2)} at the end, ${learned.seconds.toFixed(0)} s`,
        );
      }
    return chosen.flatMap((method) => compare(task, method, runs.get(method.name)!, runs.get(grpo.name)!));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeTeacher(
  task: LearningTask,
  folder: string,
  made: readonly string[],
  adapter: string,
  log: BenchmarkOptions["log"],
): Promise<void> {
  const large = [
    "data.train_batch_size=16",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.rollout.n=8",
  ];
  const steps = task.teacherSteps!;
  const taught = await task.learn({ folder, seed: 1000, steps, overrides: [...made, ...large], adapter, every: steps });
  log(`${task.name}: the teacher solves ${taught.points.at(-1)!.success.toFixed(2)}`);
}

/** Tokens sampled until the share of held-out rows is solved; infinite when it never was. */
function findTokens({ points }: Learned, share: number): number {
  return points.find(({ success }) => success >= share)?.tokens ?? Number.POSITIVE_INFINITY;
}

function compare(
  task: LearningTask,
  method: Method,
  own: readonly Learned[],
  plain: readonly Learned[],
): LearningRow[] {
  const told = { case: describe(task, method), target: null, met: null };
  const add = (metric: string, pick: (learned: Learned) => number): LearningRow => ({
    ...told,
    metric,
    ours: median(own.map(pick)),
    peers: { GRPO: median(plain.map(pick)) },
    seeds: { ours: own.map(pick), GRPO: plain.map(pick) },
  });
  return [
    ...SHARES.map((share) =>
      add(`tokens sampled until ${share} of the held-out rows are solved`, (learned) => findTokens(learned, share)),
    ),
    add("success at the end", ({ points }) => points.at(-1)!.success),
    add("mean success along the way", ({ points }) => points.reduce((sum, p) => sum + p.success, 0) / points.length),
    add("seconds of all steps", ({ seconds }) => seconds),
  ];
}
