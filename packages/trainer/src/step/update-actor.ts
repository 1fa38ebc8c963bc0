import { composePolicyLoss, needsPreparation, type PolicyLossOptions, preparePolicyLoss } from "@cria/algorithms";
import type { TrainResult, TrainSequence } from "@cria/core";
import { hashSeed, makeUniform } from "@cria/core";
import type { Session } from "../run/session-type.js";
import { countOnes } from "./flat-tokens.js";
import { cutMiniBatches } from "./mini-batches.js";

export interface ActorUpdate {
  step: number;
  learningRate: number;
  /** Group of each trajectory. */
  groups: readonly string[];
  /** Tokens in the loss of every trajectory, also of those left out of the batch. */
  lossMasks: readonly ArrayLike<number>[];
  /** By index of trajectory: those that have something to learn from. */
  batch: ReadonlyMap<number, TrainSequence>;
  options: PolicyLossOptions;
  /** The batch's `oldLogprobs` are those of the weights that the update starts from. */
  isOnPolicy: boolean;
}

/** Updates in mini-batches of prompts, for ppo_epochs epochs; one optimizer step each. */
export async function updateActor(session: Session, update: ActorUpdate): Promise<TrainResult[]> {
  const { actor, rollout } = session.config.actor_rollout_ref;
  const { batch, lossMasks, options } = update;
  const loss = composePolicyLoss(options, session.registries);
  const results: TrainResult[] = [];
  for (let round = 0; round < actor.ppo_epochs; round++) {
    const seed = hashSeed(rollout.seed, update.step, round);
    for (const [k, indices] of cutMiniBatches(update.groups, actor, seed).entries()) {
      let sequences = indices.flatMap((i) => batch.get(i) ?? []);
      if (sequences.length === 0) continue;
      if (needsPreparation(options, session.registries)) {
        const isScored = update.isOnPolicy && results.length === 0;
        const logprobs = isScored
          ? sequences.map(({ columns }) => columns!.oldLogprobs!)
          : await scoreNow(session, sequences);
        sequences = preparePolicyLoss(options, sequences, logprobs, makeUniform(hashSeed(seed, k)), session.registries);
      }
      // Trajectories left out still count in the denominators: their tokens have loss 0, not no loss.
      const tokens = indices.map((i) => countOnes(lossMasks[i]!));
      const totals = {
        tokens: tokens.reduce((sum, count) => sum + count, 0),
        sequences: tokens.filter((count) => count > 0).length,
      };
      results.push(
        await session.engine.train(
          sequences,
          (inputs) => loss({ ...inputs, totals }),
          {
            learningRate: update.learningRate,
            betas: actor.optim.betas,
            weightDecay: actor.optim.weight_decay,
            maxGradNorm: actor.grad_clip,
          },
          {
            temperature: rollout.temperature,
            // No signal: an update is finished, whatever ends the run.
            microBatchTokens: actor.ppo_max_token_len ?? undefined,
          },
        ),
      );
    }
  }
  return results;
}

/** Logprobs by the weights as they are now: one more forward pass, for losses that rank a mini-batch's tokens. */
async function scoreNow(session: Session, sequences: readonly TrainSequence[]): Promise<Float32Array[]> {
  const scores = await session.engine.score(
    sequences.map(({ tokenIds, lossMask }) => ({ tokenIds, from: Array.from(lossMask).indexOf(1) })),
    { temperature: session.config.actor_rollout_ref.rollout.temperature },
  );
  return scores.map(({ logprobs }) => logprobs);
}
