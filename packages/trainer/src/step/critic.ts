import { type Aggregation, composeValueLoss } from "@cria/algorithms";
import {
  hashSeed,
  type OptimizerOptions,
  type PolicyEngine,
  type TrainResult,
  type Trajectory,
  type ValueEngine,
} from "@cria/core";
import { loadValueModel } from "@cria/engine/internal";
import { readContextSize } from "../config/derived-values.js";
import { importDevice } from "../config/import/device.js";
import type { Settings } from "../config/import/settings.js";
import { resolvePath } from "../config/paths.js";
import { listTargets } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { describeVision } from "../policy/describe-vision.js";
import { countOnes } from "../policy/flat-tokens.js";
import { cutMiniBatches } from "../policy/mini-batches.js";
import { cutTrainSequences, evaluatePaths } from "../policy/paths.js";
import { translateImages } from "../policy/translate-images.js";
import type { Registries } from "../user-code/registries.js";

/** A critic and its training options. */
export interface Critic {
  engine: ValueEngine;
  /** The learning rate is passed with each update. */
  optimizer: Omit<OptimizerOptions, "learningRate">;
  /** Size in prompts. */
  miniBatchSize: number;
  epochs: number;
  shuffle: boolean;
  cliprangeValue: number;
  lossAggMode: Aggregation;
  /** Size in tokens; undefined: chosen automatically. */
  microBatchTokens?: number;
  /** Number of steps before the actor's first update, in which only the critic learns. */
  warmup: number;
}

/**
 * Loads the critic that the advantage estimator needs; null: it needs none.
 * @param config provides the device, context size and image settings, which the critic shares with the actor.
 * @throws EngineError when its model cannot be loaded.
 */
export async function openCritic(
  config: TrainConfig,
  { algorithm, critic, seed }: Pick<Settings, "algorithm" | "critic" | "seed">,
  folder: string,
  { advantageEstimators, aggregations }: Pick<Registries, "advantageEstimators" | "aggregations">,
): Promise<Critic | null> {
  if (!advantageEstimators.get(algorithm.advantages).needs?.includes("values")) return null;
  const { path, lora, betas, weightDecay, maxGradNorm, miniBatchSize, epochs, shuffle, cliprangeValue, warmup } =
    critic;
  const engine = await loadValueModel({
    path: resolvePath(folder, path),
    ...describeVision(config.actor_rollout_ref.model, folder),
    ...importDevice(config),
    scoredContextSize: readContextSize(config),
    trainable: lora ? "lora" : "full",
    lora: lora && { ...lora, targets: listTargets(lora.targets) },
    seed: (seed + 1) >>> 0,
  });
  return {
    engine,
    optimizer: { betas, weightDecay, maxGradNorm },
    miniBatchSize,
    epochs,
    shuffle,
    cliprangeValue,
    lossAggMode: aggregations.get(critic.lossAggMode),
    microBatchTokens: critic.microBatchTokens ?? undefined,
    warmup,
  };
}

/** The engine that sampled the trajectories; image tokens have its ids. */
type Sampler = Pick<PolicyEngine, "images" | "info">;

/** Values of each trajectory's response, as long as its tokens; all zeros for a trajectory without sampled tokens. */
export async function scoreValues(
  critic: Critic,
  trajectories: readonly Trajectory[],
  sampler: Sampler,
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const sampled = trajectories.filter((t) => t.responseMask.includes(1));
  const { sequences, join } = evaluatePaths(sampled);
  const shown = sequences.map(({ tokenIds, from }) => ({
    tokenIds: translateImages(tokenIds, sampler, critic.engine),
    from,
  }));
  const scored = join(await critic.engine.values(shown, { signal }));
  const byTrajectory = new Map(sampled.map((t, i) => [t, scored[i]!]));
  return trajectories.map((t) => byTrajectory.get(t) ?? new Float32Array(t.tokenIds.length));
}

export interface CriticUpdate {
  step: number;
  seed: number;
  /** Maximum length of a response in tokens. */
  responseLength: number;
  learningRate: number;
  trajectories: readonly Trajectory[];
  /** Values of each trajectory, as long as its tokens. */
  values: readonly Float32Array[];
  returns: readonly Float32Array[];
}

/** Updates the critic in mini-batches of prompts. Rejections of the rollout correction do not apply to the critic. */
export async function updateCritic(critic: Critic, update: CriticUpdate, sampler: Sampler): Promise<TrainResult[]> {
  const { trajectories, values, returns } = update;
  const groups = trajectories.map((t) => t.uid);
  const loss = composeValueLoss({
    cliprangeValue: critic.cliprangeValue,
    lossAggMode: critic.lossAggMode,
    lossScaleFactor: update.responseLength,
  });
  const optimizer = { ...critic.optimizer, learningRate: update.learningRate };
  const results: TrainResult[] = [];
  for (let round = 0; round < critic.epochs; round++) {
    const seed = hashSeed(update.seed, update.step, "critic", round);
    for (const indices of cutMiniBatches(groups, critic, seed)) {
      const kept = indices.filter((i) => trajectories[i]!.responseMask.includes(1));
      if (kept.length === 0) continue;
      const hasBranches = kept.some((i) => trajectories[i]!.segments !== undefined);
      const sequences = kept.flatMap((i) => {
        const columns = { oldValues: values[i]!, returns: returns[i]! };
        return cutTrainSequences(trajectories[i]!, trajectories[i]!.responseMask, columns, hasBranches).map(
          (sequence) => ({ ...sequence, tokenIds: translateImages(sequence.tokenIds, sampler, critic.engine) }),
        );
      });
      const totals = {
        tokens: kept.reduce((sum, i) => sum + countOnes(trajectories[i]!.responseMask), 0),
        sequences: kept.length,
      };
      results.push(
        await critic.engine.train(sequences, (inputs) => loss({ ...inputs, totals }), optimizer, {
          // No signal: a started update is always finished.
          microBatchTokens: critic.microBatchTokens,
        }),
      );
    }
  }
  return results;
}
