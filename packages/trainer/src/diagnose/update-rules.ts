import { percent, type Rule, shorten } from "./rule.js";
import { type RunHistory, SCORE } from "./run-history.js";

const LEARNING_RATE = "actor_rollout_ref.actor.optim.lr";
/** Steps before a run can be said to stand still. */
const LONG = 30;

/** How a policy that has broken differs from what it was in the first two steps, in words. */
function describeBreak(run: RunHistory): string[] {
  const begin = run.steps.slice(0, 2);
  const change = (name: string) => {
    const [before, after] = [run.mean(name, begin), run.values(name, run.steps).at(-1) ?? 0];
    return { before, after, ratio: before > 0 ? after / before : 1 };
  };
  const [entropy, length] = [change("actor/entropy"), change("response_length/mean")];
  const kl = run.max("actor/ppo_kl", run.steps);
  return [
    ...(kl > 0.05 ? [`an update moved the policy by a KL of ${shorten(kl)}`] : []),
    ...(entropy.ratio > 1.5 || entropy.ratio < 0.2
      ? [`entropy went from ${shorten(entropy.before)} to ${shorten(entropy.after)}`]
      : []),
    ...(length.ratio > 2 || length.ratio < 0.5
      ? [`answers from ${length.before.toFixed(0)} to ${length.after.toFixed(0)} tokens`]
      : []),
  ];
}

/** What goes wrong in updates. */
export const updateRules: readonly Rule[] = [
  {
    name: "lr_high",
    when: "The mean reward falls to a quarter of its best, and entropy, lengths or the KL of an update are far from what they were.",
    look: (run) => {
      if (run.steps.length < 8) return null;
      const [best, last] = [run.max(SCORE, run.steps), run.mean(SCORE)];
      const signs = describeBreak(run);
      if (run.place(best) < 0.15 || run.place(last) > 0.25 * run.place(best) || signs.length === 0) return null;
      const rate = run.readConfig(LEARNING_RATE);
      return {
        severity: "high",
        weight: 1,
        sentence: `The mean reward fell from ${shorten(best)} to ${shorten(last)}, ${signs.join(", ")}: the learning rate${rate === null ? "" : `, ${rate},`} is probably too high`,
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
    when: "Entropy is at most a fifth of what it was, eight in ten groups are all alike, and the mean reward is below eight tenths of its range.",
    look: (run) => {
      if (run.steps.length < 10) return null;
      const [before, after] = [run.mean("actor/entropy", run.first), run.mean("actor/entropy")];
      const alike = run.mean("critic/rewards/frac_zero_std");
      const score = run.mean(SCORE);
      // A group that is all alike has no entropy measured: then its last value stands.
      const measured = run.values("actor/entropy", run.steps).at(-1);
      const last = run.values("actor/entropy").length > 0 ? after : (measured ?? before);
      if (before <= 0 || last > 0.2 * before || alike < 0.8 || run.place(score) > 0.8) return null;
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
    when: "Over thirty steps with advantages neither the mean reward nor the entropy moves, at a learning rate below 2e-5 (adapters) or 2e-7 (whole models).",
    look: (run) => {
      const rate = run.readConfig(LEARNING_RATE);
      const usual = run.readConfig("actor_rollout_ref.model.lora_rank") === 0 ? 2e-7 : 2e-5;
      if (run.steps.length < LONG || run.silence !== null || rate === null || rate >= usual) return null;
      const third = Math.floor(run.steps.length / 3);
      const [begin, end] = [run.steps.slice(0, third), run.steps.slice(-third)];
      const [from, to] = [run.mean(SCORE, begin), run.mean(SCORE, end)];
      const [before, after] = [run.mean("actor/entropy", begin), run.mean("actor/entropy", end)];
      if (run.place(to) - run.place(from) > 0.05 || before === 0 || Math.abs(after / before - 1) > 0.15) return null;
      return {
        severity: "medium",
        weight: 0.7,
        sentence: `In ${run.steps.length} steps the mean reward stayed at ${shorten(to)} and the entropy at ${shorten(after)}: at a learning rate of ${rate} the updates do not move the policy`,
        remedy:
          "Raise actor.optim.lr tenfold; adapters of rank 8 to 64 learn at 1e-4 to 1e-3, whole models at 1e-6 to 1e-5",
        keys: [LEARNING_RATE],
        filter: null,
      };
    },
  },
];
