import { advantageEstimators, composePolicyLoss } from "@cria/algorithms";
import type { TrainResult, TrainSequence, Trajectory } from "@cria/core";
import { type DatasetRow, hashSeed, runRollouts, shuffleIndices } from "@cria/rollout";
import { collectMetrics, type StepMetrics } from "./collect-metrics.js";
import { countSamples } from "./multi-turn-options.js";
import { makePolicyLossOptions } from "./policy-loss-options.js";
import { rewardTokens } from "./reward-tokens.js";
import type { Session } from "./session.js";

export interface StepResult {
  trajectories: Trajectory[];
  metrics: StepMetrics;
}

/** One training step, top to bottom: rollouts, rewards, logprobs, advantages, updates. */
export async function runTrainingStep(
  session: Session,
  rows: readonly DatasetRow[],
  step: number,
  epoch: number,
  onTrajectory?: (trajectory: Trajectory) => void,
): Promise<StepResult> {
  const { engine, config } = session;
  const { actor, rollout } = config.actor_rollout_ref;
  const clock = new Stopwatch();

  // 1. Roll out n conversations for each prompt; tools run and rewards are judged on the way.
  const trajectories = await clock.time("gen", () =>
    runRollouts(engine, rows, {
      ...session.rollout,
      n: countSamples(rollout),
      temperature: rollout.temperature,
      topP: rollout.top_p,
      topK: Math.max(0, rollout.top_k),
      step,
      onTrajectory,
    }),
  );

  session.rollout.signal?.throwIfAborted();

  // 2. Rewards on tokens: a step's where it was earned, the trajectory's by reward_model.aggregation.strategy.
  const tokenLevelRewards = clock.timeSync("reward", () => trajectories.map((t) => rewardTokens(t, session)));

  const rewards = tokenLevelRewards.map((tokens) => tokens.reduce((sum, reward) => sum + reward, 0));

  // 3. Advantages: one for each trajectory, from its group.
  const advantages = clock.timeSync("adv", () =>
    advantageEstimators.get(config.algorithm.adv_estimator)({
      rewards,
      groups: trajectories.map((t) => t.uid),
      normalizeByStd: config.algorithm.norm_adv_by_std_in_grpo,
    }),
  );

  // 4. Logprobs by the training graph: the ratio is then exactly 1 before the first update. A trajectory without
  //    advantage has no policy gradient, so it is scored only when a KL or entropy term gives it one.
  const needsAll = actor.use_kl_loss || actor.entropy_coeff !== 0;
  const used = trajectories
    .map((_, i) => i)
    .filter((i) => trajectories[i]!.responseMask.includes(1) && (needsAll || Math.abs(advantages[i]!) > 1e-8));
  const scored = used.map((i) => ({ tokenIds: trajectories[i]!.tokenIds, from: trajectories[i]!.promptLength }));
  const scoreOptions = { temperature: rollout.temperature, signal: session.rollout.signal };
  const old = await clock.time("old_log_prob", () => engine.score(scored, { ...scoreOptions, entropy: true }));
  const frozen = session.reference;
  const reference = frozen
    ? await clock.time("ref", () => frozen.score(scored, { ...scoreOptions, adapter: false }))
    : null;

  // 5. The batch: per-token columns for the loss.
  const batch = new Map<number, TrainSequence>();
  used.forEach((index, k) => {
    const { tokenIds, responseMask } = trajectories[index]!;
    batch.set(index, {
      tokenIds,
      lossMask: responseMask,
      columns: {
        advantages: new Float32Array(tokenIds.length).fill(advantages[index]!),
        oldLogprobs: old[k]!.logprobs,
        ...(reference ? { refLogprobs: reference[k]!.logprobs } : {}),
      },
    });
  });

  // 6. Updates in mini-batches of prompts, for ppo_epochs epochs.
  const loss = composePolicyLoss(makePolicyLossOptions(actor));
  const learningRate = actor.optim.lr * Math.min(1, step / Math.max(1, actor.optim.lr_warmup_steps));
  const updates: TrainResult[] = [];
  await clock.time("update_actor", async () => {
    for (let round = 0; round < actor.ppo_epochs; round++) {
      for (const indices of cutMiniBatches(trajectories, rows.length, actor, hashSeed(rollout.seed, step, round))) {
        const sequences = indices.flatMap((i) => batch.get(i) ?? []);
        if (sequences.length === 0) continue;
        // Trajectories left out above still count in the denominators: their tokens have loss 0, not no loss.
        const sampled = indices.map((i) => countSampled(trajectories[i]!));
        const totals = {
          tokens: sampled.reduce((sum, count) => sum + count, 0),
          sequences: sampled.filter((count) => count > 0).length,
        };
        updates.push(
          await engine.train(
            sequences,
            (inputs) => loss({ ...inputs, totals }),
            {
              learningRate,
              betas: actor.optim.betas,
              weightDecay: actor.optim.weight_decay,
              maxGradNorm: actor.grad_clip,
            },
            {
              temperature: rollout.temperature,
              microBatchTokens: actor.ppo_max_token_len ?? undefined,
              signal: session.rollout.signal,
            },
          ),
        );
      }
    }
  });

  const metrics = collectMetrics({
    trajectories,
    rewards,
    advantages,
    used,
    old,
    updates,
    learningRate,
    seconds: clock.seconds(),
    step,
    epoch,
    config,
  });
  return { trajectories, metrics };
}

function countSampled(trajectory: Trajectory): number {
  let count = 0;
  for (const bit of trajectory.responseMask) count += bit;
  return count;
}

/** Indices of trajectories, prompts kept together, in an order that the seed decides. */
function cutMiniBatches(
  trajectories: readonly Trajectory[],
  prompts: number,
  actor: { ppo_mini_batch_size: number; shuffle: boolean },
  seed: number,
): number[][] {
  const n = trajectories.length / prompts;
  const order = actor.shuffle ? [...shuffleIndices(prompts, seed)] : Array.from({ length: prompts }, (_, i) => i);
  const batches: number[][] = [];
  for (let start = 0; start < prompts; start += actor.ppo_mini_batch_size) {
    batches.push(
      order
        .slice(start, start + actor.ppo_mini_batch_size)
        .flatMap((prompt) => Array.from({ length: n }, (_, k) => prompt * n + k)),
    );
  }
  return batches;
}

/** Seconds spent by name. */
class Stopwatch {
  private readonly started = performance.now();
  private readonly spent: Record<string, number> = {};

  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.spent[name] = (this.spent[name] ?? 0) + (performance.now() - start) / 1000;
    }
  }

  timeSync<T>(name: string, work: () => T): T {
    const start = performance.now();
    const result = work();
    this.spent[name] = (this.spent[name] ?? 0) + (performance.now() - start) / 1000;
    return result;
  }

  seconds(): Record<string, number> {
    return { ...this.spent, step: (performance.now() - this.started) / 1000 };
  }
}
