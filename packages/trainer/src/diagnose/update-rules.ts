import { average } from "./average.js";
import { percent, type Rule, shorten } from "./rule.js";
import { type RunHistory, SCORE, WINDOW } from "./run-history.js";

const LEARNING_RATE = "actor_rollout_ref.actor.optim.lr";
const ENTROPY = "actor_rollout_ref.actor.entropy_coeff";
/** Minimum number of steps before a run counts as standing still. */
const LONG = 30;

/** A KL per update that healthy runs exceed now and then, but never in the median of five steps. */
const FAR = 0.03;
/** Below this KL, an update does not move the policy. */
const NEAR = 1e-6;

/** KL by which the recent updates move the policy: from their loss, or as measured after them. */
function findMove(run: RunHistory): number {
  return Math.max(run.mean("actor/ppo_kl"), run.median("actor/update_kl"));
}

/** Describes the differences between a broken policy and its first two steps. */
function describeBreak(run: RunHistory): string[] {
  const begin = run.steps.slice(0, 2);
  const change = (name: string) => {
    const [before, after] = [run.mean(name, begin), run.values(name, run.steps).at(-1) ?? 0];
    return { before, after, ratio: before > 0 ? after / before : 1 };
  };
  const [entropy, length] = [change("actor/entropy"), change("response_length/mean")];
  const kl = Math.max(run.max("actor/ppo_kl", run.steps), findMove(run));
  return [
    ...(kl > FAR ? [`an update moved the policy by a KL of ${shorten(kl)}`] : []),
    ...(entropy.ratio > 1.5 || entropy.ratio < 0.2
      ? [`entropy went from ${shorten(entropy.before)} to ${shorten(entropy.after)}`]
      : []),
    ...(length.ratio > 2 || length.ratio < 0.5
      ? [`answers from ${length.before.toFixed(0)} to ${length.after.toFixed(0)} tokens`]
      : []),
  ];
}

/** Fall of the mean reward, from its best to now; null if it has not fallen, or not significantly. */
function findFall(run: RunHistory): { best: number; now: number } | null {
  const { fall } = run;
  // Three fifths of the gains are lost: no other sign is needed.
  if (fall && run.place(fall.best) >= 0.3 && run.place(fall.now) <= 0.4 * run.place(fall.best)) return fall;
  const isFar = run.steps.length >= 2 * WINDOW && run.median("actor/update_kl") > FAR;
  const last = run.recent.at(-1)?.[SCORE];
  if (fall && isFar && last !== undefined && run.place(fall.best) - run.place(last) > 0.35)
    return { best: fall.best, now: last };
  if (run.steps.length < 8 || describeBreak(run).length === 0) return null;
  const [best, now] = [run.max(SCORE, run.steps), run.mean(SCORE)];
  return run.place(best) >= 0.15 && run.place(now) <= 0.25 * run.place(best) ? { best, now } : null;
}

/**
 * Weight of the entropy bonus relative to the rewards: coefficient, mean entropy per token, and mean of the largest
 * advantages over the steps that have any; null without a bonus.
 */
function weighBonus(run: RunHistory): { coefficient: number; entropy: number; advantage: number } | null {
  const coefficient = run.readConfig(ENTROPY);
  if (coefficient === null || coefficient <= 0) return null;
  const highest = run.values("critic/advantages/max", run.steps).filter((value) => value > 0);
  return { coefficient, entropy: run.mean("actor/entropy"), advantage: average(highest) ?? 0 };
}

/**
 * True if the entropy bonus, rather than the rewards, moves the policy: entropy rises, and the bonus is a
 * considerable part of the loss.
 */
function isBonusTooHigh(run: RunHistory): boolean {
  const bonus = weighBonus(run);
  if (!bonus || bonus.coefficient * bonus.entropy < 0.05 * bonus.advantage) return false;
  return (run.values("actor/entropy").at(-1) ?? 0) > 1.3 * run.mean("actor/entropy", run.first);
}

/** Rules about updates. */
export const updateRules: readonly Rule[] = [
  {
    name: "entropy_bonus",
    when: "The mean reward falls by two fifths while entropy rises by a third, and the entropy bonus weighs a twentieth of the advantages or more.",
    look: (run) => {
      const { fall } = run;
      const bonus = weighBonus(run);
      if (!bonus || !fall || !isBonusTooHigh(run)) return null;
      if (run.place(fall.best) < 0.15 || run.place(fall.now) > 0.6 * run.place(fall.best)) return null;
      const from = run.mean("actor/entropy", run.first);
      const to = run.values("actor/entropy").at(-1)!;
      return {
        severity: "high",
        weight: 1,
        sentence: `The mean reward fell from ${shorten(fall.best)} to ${shorten(fall.now)} while entropy went from ${shorten(from)} to ${shorten(to)}: the entropy bonus, ${bonus.coefficient} a nat, pays for being unsure more than rewards pay for being right`,
        remedy: "Lower actor.entropy_coeff to 0.01 or 0, and begin again: what was learned is gone",
        keys: [ENTROPY],
        filter: null,
      };
    },
  },
  {
    name: "lr_high",
    when: "The mean reward of three steps falls to two fifths of its best; or to a quarter over five, where entropy, lengths or the KL of an update are far from what they were; or a step's by a third of its range, where updates move the policy by a KL of 0.03. An entropy bonus does not explain it.",
    look: (run) => {
      const fall = findFall(run);
      if (!fall || isBonusTooHigh(run)) return null;
      const signs = describeBreak(run);
      const rate = run.readConfig(LEARNING_RATE);
      return {
        severity: "high",
        weight: 1,
        sentence: `${[`The mean reward fell from ${shorten(fall.best)} to ${shorten(fall.now)}`, ...signs].join(", ")}: the learning rate${rate === null ? "" : `, ${rate},`} is probably too high`,
        remedy:
          "Lower actor.optim.lr to a third or a tenth, and begin again, or go on from a checkpoint before the fall",
        keys: [LEARNING_RATE, "actor_rollout_ref.actor.grad_clip"],
        filter: null,
      };
    },
  },
  {
    name: "kl_high",
    when: "Updates move the policy by a KL above 0.1 (actor/ppo_kl) or 0.05 (actor/update_kl, in the middle of five steps) or clip a third of the tokens, or the KL to the reference is above 1, over five steps.",
    look: (run) => {
      if (run.steps.length < 5) return null;
      const moved = findMove(run);
      const isFar = run.mean("actor/ppo_kl") > 0.1 || run.median("actor/update_kl") > 0.05;
      const clipped = run.mean("actor/pg_clipfrac");
      const away = Math.max(run.mean("actor/kl_loss"), run.mean("actor/reward_kl_penalty"));
      const seen = [
        ...(isFar ? [`the updates of a step move the policy by a KL of ${shorten(moved)}`] : []),
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
    isOfRewards: true,
    look: (run) => {
      if (run.steps.length < 10) return null;
      const [before, after] = [run.mean("actor/entropy", run.first), run.mean("actor/entropy")];
      const alike = run.mean("critic/rewards/frac_zero_std");
      const score = run.mean(SCORE);
      // Groups whose rewards are all equal have no measured entropy: use the last value.
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
    when: "Over thirty steps with advantages neither the mean reward nor the entropy moves, and updates move the policy by a KL below a millionth, or the learning rate is below 2e-5 (adapters) or 2e-7 (whole models).",
    look: (run) => {
      const rate = run.readConfig(LEARNING_RATE);
      const usual = run.readConfig("actor_rollout_ref.model.lora_rank") === 0 ? 2e-7 : 2e-5;
      const moved = run.median("actor/update_kl", run.steps);
      const isLow = (rate !== null && rate < usual) || (moved > 0 && moved < NEAR);
      if (run.steps.length < LONG || run.silence !== null || !isLow) return null;
      const third = Math.floor(run.steps.length / 3);
      const [begin, end] = [run.steps.slice(0, third), run.steps.slice(-third)];
      const [from, to] = [run.mean(SCORE, begin), run.mean(SCORE, end)];
      const [before, after] = [run.mean("actor/entropy", begin), run.mean("actor/entropy", end)];
      // If nearly everything is solved, nothing needs to move.
      if (
        run.place(to) > 0.8 ||
        run.place(to) - run.place(from) > 0.05 ||
        before === 0 ||
        Math.abs(after / before - 1) > 0.15
      )
        return null;
      return {
        severity: "medium",
        weight: 0.7,
        sentence: `In ${run.steps.length} steps the mean reward stayed at ${shorten(to)} and the entropy at ${shorten(after)}: ${rate === null ? "" : `at a learning rate of ${rate} `}the updates do not move the policy${moved > 0 ? ` (by a KL of ${shorten(moved)})` : ""}`,
        remedy:
          "Raise actor.optim.lr tenfold; adapters of rank 8 to 64 learn at 1e-4 to 1e-3, whole models at 1e-6 to 1e-5",
        keys: [LEARNING_RATE],
        filter: null,
      };
    },
  },
];
