/**
 * Ways to learn against plain GRPO, at equal sampled tokens: on the calculator of the demo, how many tokens the policy samples until
 * 0.5 and 0.9 of the held-out problems are solved, greedily. The teacher is an adapter that GRPO trained, with another seed.
 * `CRIA_LEARNING_SEEDS` (5) and `CRIA_LEARNING_STEPS` (40) make it shorter.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import type { Measured, Row } from "../row.js";
import { type Learned, trainMethod } from "./train-method.js";

const SEEDS = Number(process.env.CRIA_LEARNING_SEEDS ?? 5);
const STEPS = Number(process.env.CRIA_LEARNING_STEPS ?? 40);
const TEACHER_STEPS = 80;
const SHARES = [0.5, 0.9];

interface Method {
  name: string;
  /** Overrides of the config, where the adapter of the teacher is {teacher}. */
  overrides: readonly string[];
  /** Largest share of GRPO's tokens that is expected; null: the row only informs. */
  most: number | null;
}

const loss = "distillation.distillation_loss";
const taught = [
  "distillation.enabled=true",
  "distillation.teacher_models={ trained: { lora_adapter_path: {teacher} } }",
];

const methods: readonly Method[] = [
  { name: "a teacher beside the rewards (k3)", overrides: taught, most: 0.5 },
  { name: "a teacher alone (k3)", overrides: [...taught, `${loss}.use_task_rewards=false`], most: 0.5 },
  {
    name: "a teacher alone (k1 as advantage)",
    overrides: [
      ...taught,
      `${loss}.use_task_rewards=false`,
      `${loss}.loss_mode=k1`,
      `${loss}.use_policy_gradient=true`,
    ],
    most: 0.5,
  },
  { name: "tools' answers too (ECHO)", overrides: ["actor_rollout_ref.actor.observation_coeff=0.1"], most: null },
  { name: "MaxRL", overrides: ["algorithm.adv_estimator=max_rl"], most: null },
  { name: "MT-GRPO", overrides: ["algorithm.adv_estimator=mt_grpo"], most: null },
  { name: "rows by difficulty", overrides: ["data.sampler.class_name=difficulty"], most: null },
  { name: "half of the groups once more", overrides: ["algorithm.replay.share=0.5"], most: null },
];

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const chosen = methods.filter(({ name }) => includes(name));
  if (chosen.length === 0) return { rows: [] };
  const folder = await mkdtemp(join(tmpdir(), "cria-learning-"));
  try {
    const teacher = join(folder, "teacher.gguf");
    log(`teacher: ${TEACHER_STEPS} steps of GRPO`);
    await trainMethod({
      folder,
      seed: 1000,
      steps: TEACHER_STEPS,
      overrides: [],
      adapter: teacher,
      every: TEACHER_STEPS,
    });
    const runs = new Map<string, Learned[]>();
    // Methods take turns, so that a change of the machine meets all.
    for (let seed = 1; seed <= SEEDS; seed++)
      for (const { name, overrides } of [{ name: "GRPO", overrides: [] }, ...chosen]) {
        const given = overrides.map((override) => override.replace("{teacher}", teacher));
        const learned = await trainMethod({ folder, seed, steps: STEPS, overrides: given, every: 1 });
        runs.set(name, [...(runs.get(name) ?? []), learned]);
        const found = SHARES.map((share) => findTokens(learned, share));
        log(`${name}, seed ${seed}: ${found.join(", ")} tokens, ${learned.seconds.toFixed(0)} s`);
      }
    const grpo = runs.get("GRPO")!;
    return { rows: chosen.flatMap((method) => compare(method, runs.get(method.name)!, grpo)) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Tokens sampled until the share of held-out problems is solved; infinite when it never was. */
function findTokens({ points }: Learned, share: number): number {
  return points.find(({ success }) => success >= share)?.tokens ?? Number.POSITIVE_INFINITY;
}

function compare({ name, most }: Method, runs: readonly Learned[], grpo: readonly Learned[]): Row[] {
  const solved = SHARES.map((share): Row => {
    const [own, plain] = [runs, grpo].map((of) => median(of.map((learned) => findTokens(learned, share)))) as [
      number,
      number,
    ];
    const isGoal = most !== null && share === 0.5;
    return {
      case: name,
      metric: `tokens sampled until ${share} of the held-out problems are solved`,
      ours: own,
      peers: { GRPO: plain },
      target: isGoal ? `at most ${most} of GRPO's` : null,
      met: isGoal ? own <= most * plain : null,
    };
  });
  const after = (of: readonly Learned[]) => median(of.map(({ points }) => points.at(-1)!.success));
  const seconds = (of: readonly Learned[]) => median(of.map((learned) => learned.seconds));
  const told = { target: null, met: null };
  return [
    ...solved,
    { case: name, metric: `success after ${STEPS} steps`, ours: after(runs), peers: { GRPO: after(grpo) }, ...told },
    { case: name, metric: `seconds of ${STEPS} steps`, ours: seconds(runs), peers: { GRPO: seconds(grpo) }, ...told },
  ];
}
