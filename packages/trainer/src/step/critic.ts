import { composeValueLoss } from "@cria/algorithms";
import type { TrainResult, TrainSequence, Trajectory } from "@cria/core";
import { hashSeed } from "@cria/core";
import { countOnes } from "../policy/flat-tokens.js";
import { cutMiniBatches } from "../policy/mini-batches.js";
import type { Critic } from "../run/session-type.js";

/** Values of each trajectory's response, as long as its tokens; zeros where nothing was sampled. */
export async function scoreValues(
  critic: Critic,
  trajectories: readonly Trajectory[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const sampled = trajectories.filter((t) => t.responseMask.includes(1));
  const scored = await critic.engine.values(
    sampled.map(({ tokenIds, promptLength }) => ({ tokenIds, from: promptLength })),
    { signal },
  );
  const byTrajectory = new Map(sampled.map((t, i) => [t, scored[i]!]));
  return trajectories.map((t) => byTrajectory.get(t) ?? new Float32Array(t.tokenIds.length));
}

export interface CriticUpdate {
  step: number;
  seed: number;
  /** The longest response allowed, in tokens. */
  responseLength: number;
  learningRate: number;
  trajectories: readonly Trajectory[];
  /** Of each trajectory, as long as its tokens. */
  values: readonly Float32Array[];
  returns: readonly Float32Array[];
}

/** Updates in mini-batches of prompts; rejections of the rollout correction do not concern the critic. */
export async function updateCritic(critic: Critic, update: CriticUpdate): Promise<TrainResult[]> {
  const { trajectories, values, returns } = update;
  const groups = trajectories.map((t) => t.uid);
  const loss = composeValueLoss({
    cliprangeValue: critic.cliprangeValue,
    lossAggMode: critic.lossAggMode,
    lossScaleFactor: update.responseLength,
  });
  const optimizer = { ...critic.optimizer, learningRate: update.learningRate };
  const results: TrainResult[] = [];
  for (let round = 0; round < critic.ppo_epochs; round++) {
    const seed = hashSeed(update.seed, update.step, "critic", round);
    for (const indices of cutMiniBatches(groups, critic, seed)) {
      const kept = indices.filter((i) => trajectories[i]!.responseMask.includes(1));
      if (kept.length === 0) continue;
      const sequences = kept.map((i): TrainSequence => {
        const { tokenIds, responseMask } = trajectories[i]!;
        return { tokenIds, lossMask: responseMask, columns: { oldValues: values[i]!, returns: returns[i]! } };
      });
      const totals = {
        tokens: kept.reduce((sum, i) => sum + countOnes(trajectories[i]!.responseMask), 0),
        sequences: kept.length,
      };
      results.push(
        await critic.engine.train(sequences, (inputs) => loss({ ...inputs, totals }), optimizer, {
          // No signal: an update that has begun is always finished.
          microBatchTokens: critic.microBatchTokens,
        }),
      );
    }
  }
  return results;
}
