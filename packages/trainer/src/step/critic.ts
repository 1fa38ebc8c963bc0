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
import { usesLora } from "../config/derived-values.js";
import { resolvePath } from "../config/paths.js";
import { listTargets } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { describeVision } from "../policy/describe-vision.js";
import { countOnes } from "../policy/flat-tokens.js";
import { cutMiniBatches } from "../policy/mini-batches.js";
import { cutTrainSequences, evaluatePaths } from "../policy/paths.js";
import { translateImages } from "../policy/translate-images.js";
import type { Registries } from "../user-code/registries.js";

/** A critic and how it is trained. */
export interface Critic {
  engine: ValueEngine;
  /** The learning rate is given with each update. */
  optimizer: Omit<OptimizerOptions, "learningRate">;
  /** In prompts. */
  ppo_mini_batch_size: number;
  ppo_epochs: number;
  shuffle: boolean;
  cliprangeValue: number;
  lossAggMode: Aggregation;
  /** In tokens; undefined: chosen. */
  microBatchTokens?: number;
  /** Steps before the actor's first update, in which the critic alone learns. */
  warmup: number;
}

/**
 * The critic that the config's advantage estimator needs, or null. It trains as the actor does, LoRA or full, from the same
 * file unless the config says otherwise.
 * @throws EngineError when its model cannot be loaded.
 */
export async function openCritic(
  config: TrainConfig,
  folder: string,
  { advantageEstimators, aggregations }: Pick<Registries, "advantageEstimators" | "aggregations">,
): Promise<Critic | null> {
  if (!advantageEstimators.get(config.algorithm.adv_estimator).needs?.includes("values")) return null;
  const { critic, trainer } = config;
  const { model: actor, actor: updates } = config.actor_rollout_ref;
  const isLora = critic.model.lora_rank === null ? usesLora(config) : critic.model.lora_rank > 0;
  const engine = await loadValueModel({
    path: resolvePath(folder, critic.model.path ?? actor.path),
    ...describeVision(actor, folder),
    device: trainer.device,
    threads: trainer.threads ?? undefined,
    trainable: isLora ? "lora" : "full",
    lora: isLora
      ? {
          // What an actor that starts from an adapter's file does not say is as in any new adapter.
          rank: critic.model.lora_rank ?? (actor.lora_rank || undefined),
          alpha: critic.model.lora_alpha ?? actor.lora_alpha ?? undefined,
          targets: listTargets(critic.model.target_modules ?? actor.target_modules),
        }
      : null,
    seed: (config.actor_rollout_ref.rollout.seed + 1) >>> 0,
  });
  return {
    engine,
    optimizer: {
      betas: critic.optim.betas,
      weightDecay: critic.optim.weight_decay,
      maxGradNorm: critic.grad_clip,
    },
    ppo_mini_batch_size: critic.ppo_mini_batch_size ?? updates.ppo_mini_batch_size,
    ppo_epochs: critic.ppo_epochs ?? updates.ppo_epochs,
    shuffle: critic.shuffle,
    cliprangeValue: critic.cliprange_value,
    lossAggMode: aggregations.get(critic.loss_agg_mode),
    microBatchTokens: critic.ppo_max_token_len ?? undefined,
    warmup: trainer.critic_warmup,
  };
}

/** Whose tokens trajectories have. */
type Sampler = Pick<PolicyEngine, "images" | "info">;

/** Values of each trajectory's response, as long as its tokens; zeros where nothing was sampled. */
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
  /** The longest response allowed, in tokens. */
  responseLength: number;
  learningRate: number;
  trajectories: readonly Trajectory[];
  /** Of each trajectory, as long as its tokens. */
  values: readonly Float32Array[];
  returns: readonly Float32Array[];
}

/** Updates in mini-batches of prompts; rejections of the rollout correction do not concern the critic. */
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
  for (let round = 0; round < critic.ppo_epochs; round++) {
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
          // No signal: an update that has begun is always finished.
          microBatchTokens: critic.microBatchTokens,
        }),
      );
    }
  }
  return results;
}
