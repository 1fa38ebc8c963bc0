import { join } from "node:path";
import { RunFolder, runTraining } from "cria";
import { calculatorFolder, openCalculator } from "../open-calculator.js";

export interface MethodOptions {
  /** Where run folders lie. */
  folder: string;
  seed: number;
  steps: number;
  /** "key.path=value", of the example's config. */
  overrides: readonly string[];
  /** Steps between validations. */
  every: number;
  /** Where the trained adapter is written; left out: nowhere. */
  adapter?: string;
}

export interface Learned {
  /** Share of the held-out problems that are solved, greedily, after so many sampled tokens. */
  points: { tokens: number; success: number }[];
  /** Of the steps, without validations. */
  seconds: number;
}

let runs = 0;

/** A training of the calculator. */
export async function trainMethod(options: MethodOptions): Promise<Learned> {
  const { folder, seed, steps, overrides, every, adapter } = options;
  const points: Learned["points"] = [];
  let tokens = 0;
  let seconds = 0;
  const training = await openCalculator({ seed, steps }, [
    `trainer.test_freq=${every}`,
    // Small steps: a large one solves the task at once, and nothing could be told apart.
    "data.train_batch_size=2",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2",
    "actor_rollout_ref.rollout.n=4",
    ...overrides,
  ]);
  try {
    await runTraining(training, {
      folder: await RunFolder.create(join(folder, `run-${runs++}`)),
      configFolder: calculatorFolder,
      report: (event) => {
        if (event.type === "validated") points.push({ tokens, success: event.success ?? 0 });
        if (event.type !== "step") return;
        tokens += event.metrics["engine/decode_tokens"]!;
        seconds += event.metrics["timing_s/step"]!;
      },
    });
    if (adapter !== undefined) await training.policy.save(adapter);
  } finally {
    await training.dispose();
  }
  return { points, seconds };
}
