import { spawn } from "node:child_process";
import { join } from "node:path";
import { readLines } from "../lines.js";

const root = join(import.meta.dirname, "..", "..");

export interface Point {
  step: number;
  /** Share of problems solved, 0 to 1. */
  success: number;
}

export interface TrainingCurves {
  /** Sampled (temperature 1) success on the 256 held-out problems. */
  heldOut: Point[];
  /** Success of each step's own rollouts. */
  training: Point[];
  seconds: number;
}

/**
 * Trains the embedded policy in the calculator environment in a separate process, on one thread.
 * @throws Error with the command's last output when it fails.
 */
export async function trainOnce(
  name: string,
  seed: number,
  overrides: readonly string[],
  folder: string,
): Promise<TrainingCurves> {
  const started = performance.now();
  await runCria([
    "train",
    join(root, "examples", "calculator", "config.yaml"),
    "--json",
    `trainer.default_local_dir=${folder}`,
    `trainer.project_name=${name}`,
    `trainer.experiment_name=seed-${seed}`,
    "trainer.threads=1",
    "trainer.test_freq=20",
    "trainer.logger=[file]",
    "actor_rollout_ref.rollout.val_kwargs.do_sample=true",
    `actor_rollout_ref.rollout.seed=${seed}`,
    `data.seed=${seed}`,
    ...overrides,
  ]);
  const metrics = readLines<Record<string, number>>(join(folder, name, `seed-${seed}`, "metrics.jsonl"));
  const validated = Object.keys(metrics[0]!).find((key) => key.startsWith("val-core/") && key.endsWith("/mean@1"))!;
  const pick = (key: string): Point[] =>
    metrics.filter((m) => key in m).map((m) => ({ step: m["training/global_step"]!, success: m[key]! }));
  return {
    heldOut: pick(validated),
    training: pick("reward/score/mean"),
    seconds: (performance.now() - started) / 1000,
  };
}

function runCria(args: string[]): Promise<void> {
  const child = spawn(process.execPath, [join(root, "apps", "trainer", "bin", "cria.mjs"), ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-2000);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`cria train ended with ${code}: ${said}`))));
  });
}
