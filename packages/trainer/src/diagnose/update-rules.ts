import { percent, type Rule, shorten } from "./rule.js";
import type { RunHistory } from "./run-history.js";

const LEARNING_RATE = "actor_rollout_ref.actor.optim.lr";
const SCORE = "critic/score/mean";
/** Steps before a run can be said to stand still. */
const LONG = 30;

/** How far up the range of all rewards of the run a mean is: 0 to 1. */
function place(run: RunHistory, score: number): number {
  const low = run.min("critic/score/min", run.steps);
  const high = run.max("critic/score/max", run.steps);
  return high > low ? (score - low) / (high - low) : 0;
}

/** The highest mean score of five steps in a row. */
function findBest(run: RunHistory): number {
  const means = run.steps.map((_, i) => run.mean(SCORE, run.steps.slice(Math.max(0, i - 4), i + 1)));
  return Math.max(...means.slice(4));
}

/** What goes wrong in updates. */
export const updateRules: readonly Rule[] = [
  {
    name: "lr_high",
    when: "The mean reward falls to half of its best, and the updates move the policy far or its entropy has left its range.",
    look: (run) => {
      if (run.steps.length < 8) return null;
      const [best, last] = [findBest(run), run.mean(SCORE)];
      if (place(run, best) < 0.1 || place(run, last) > 0.5 * place(run, best)) return null;
      const [before, after] = [run.mean("actor/entropy", run.first), run.mean("actor/entropy")];
      const kl = run.max("actor/ppo_kl", run.steps);
      const hasLeft = run.values("actor/entropy").length > 0 && (after > 2 * before || after < 0.2 * before);
      if (kl < 0.05 && !hasLeft) return null;
      const rate = run.readConfig(LEARNING_RATE);
      return {
        severity: "high",
        weight: 0.9,
        sentence: `The mean reward fell from ${shorten(best)} to ${shorten(last)}, and ${kl >= 0.05 ? `an update moved the policy by a KL of ${shorten(kl)}` : `entropy went from ${shorten(before)} to ${shorten(after)}`}: the learning rate${rate === null ? "" : `, ${rate},`} is probably too high`,
        remedy: "Lower actor.optim.lr to a third or a tenth, and begin again: what was learned is gone",
        keys: [LEARNING_RATE, "actor_rollout_ref.actor.grad_clip"],
        filter: null,
      };
    },
  },
  {
    name: "kl_high",
    when: "Updates move the policy by a KL above 0.1 or clip a third of the tokens, or the KL to the reference is above 1, over five steps.",
    look: (run) => {
      if (run.steps.length < 5) return null;
      const moved = run.mean("actor/ppo_kl");
      const clipped = run.mean("actor/pg_clipfrac");
      const away = Math.max(run.mean("actor/kl_loss"), run.mean("actor/reward_kl_penalty"));
      const seen = [
        ...(moved > 0.1 ? [`the updates of a step move the policy by a KL of ${shorten(moved)}`] : []),
        ...(clipped > 0.33 ? [`${percent(clipped)} of the tokens are clipped`] : []),
        ...(away > 1 ? [`the KL to the reference is ${shorten(away)} a token`] : []),
      ];
      if (seen.length === 0) return null;
      const text = seen.join(", and ");
      return {
        severity: "medium",
        weight: 0.5,
        sentence: text[0]!.toUpperCase() + text.slice(1),
        remedy:
          "Lower actor.optim.lr, take fewer updates of the same rollouts (ppo_epochs, a larger ppo_mini_batch_size), or raise the KL's coefficient",
        keys: [
          LEARNING_RATE,
          "actor_rollout_ref.actor.ppo_epochs",
          "actor_rollout_ref.actor.ppo_mini_batch_size",
          "actor_rollout_ref.actor.kl_loss_coef",
        ],
        filter: null,
      };
    },
  },
  {
    name: "entropy_collapse",
    when: "Entropy is at most a tenth of what it was, most groups are all alike, and the mean reward is below eight tenths of its range.",
    look: (run) => {
      if (run.steps.length < 10) return null;
      const [before, after] = [run.mean("actor/entropy", run.first), run.mean("actor/entropy")];
      const alike = run.mean("critic/rewards/frac_zero_std");
      const score = run.mean(SCORE);
      // A group that is all alike has no entropy measured: then its last value stands.
      const measured = run.values("actor/entropy", run.steps).at(-1);
      const last = run.values("actor/entropy").length > 0 ? after : (measured ?? before);
      if (before <= 0 || last > 0.1 * before || alike < 0.6 || place(run, score) > 0.8) return null;
      return {
        severity: "high",
        weight: 0.8,
        sentence: `Entropy fell from ${shorten(before)} to ${shorten(last)}, and in ${percent(alike)} of the groups all conversations are paid the same, at a mean reward of ${shorten(score)}: the policy has stopped to try other answers`,
        remedy:
          "Begin again with a lower actor.optim.lr, an entropy_coeff of 0.001 to 0.01, or a KL to the model (use_kl_loss)",
        keys: [LEARNING_RATE, "actor_rollout_ref.actor.entropy_coeff", "actor_rollout_ref.actor.use_kl_loss"],
        filter: null,
      };
    },
  },
  {
    name: "lr_low",
    when: "Over thirty steps with advantages neither the mean reward nor the entropy moves, and no token is clipped.",
    look: (run) => {
      if (run.steps.length < LONG || run.silence !== null) return null;
      const third = Math.floor(run.steps.length / 3);
      const [begin, end] = [run.steps.slice(0, third), run.steps.slice(-third)];
      const [from, to] = [run.mean(SCORE, begin), run.mean(SCORE, end)];
      const [before, after] = [run.mean("actor/entropy", begin), run.mean("actor/entropy", end)];
      const moved = Math.max(
        Math.abs(run.max("actor/ppo_kl", run.steps)),
        Math.abs(run.min("actor/ppo_kl", run.steps)),
      );
      if (Math.abs(place(run, to) - place(run, from)) > 0.03 || before === 0) return null;
      if (Math.abs(after / before - 1) > 0.05 || run.max("actor/pg_clipfrac", run.steps) > 0 || moved > 1e-5)
        return null;
      const rate = run.readConfig(LEARNING_RATE);
      return {
        severity: "medium",
        weight: 0.7,
        sentence: `In ${run.steps.length} steps the mean reward stayed at ${shorten(to)} and the entropy at ${shorten(after)}: the updates do not move the policy${rate === null ? "" : `, at a learning rate of ${rate}`}`,
        remedy:
          "Raise actor.optim.lr tenfold; adapters of rank 8 to 64 learn at 1e-4 to 1e-3, whole models at 1e-6 to 1e-5",
        keys: [LEARNING_RATE],
        filter: null,
      };
    },
  },
];
