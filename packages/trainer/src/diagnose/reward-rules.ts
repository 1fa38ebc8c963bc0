import { average } from "./average.js";
import { type Rule, shorten } from "./rule.js";
import { type RunHistory, SCORE } from "./run-history.js";

/** Steps before trends are judged. */
const LONG = 15;

/**
 * First and last success, as opposed to the reward that is trained on: of validations, else the reward function's
 * `acc`.
 */
function compareSuccess(run: RunHistory): { before: number; after: number; where: string } | null {
  const { heldOut } = run;
  if (heldOut.length >= 3)
    return { before: Math.max(...heldOut.slice(0, -1)), after: heldOut.at(-1)!, where: "held-out success" };
  const name = "reward_extra/acc/mean";
  if (run.values(name).length === 0) return null;
  return { before: run.mean(name, run.first), after: run.mean(name), where: "success" };
}

/** Mean and spread of each part of the scores, over the whole run. */
function describeParts(run: RunHistory): { name: string; spread: number; mean: number }[] {
  return run.parts
    .filter((name) => name !== "overlong")
    .map((name) => ({
      name,
      spread: average(run.values(`reward_part/${name}/std`, run.steps)) ?? 0,
      mean: run.mean(`reward_part/${name}/mean`, run.steps),
    }));
}

/** Rules about rewards that differ between conversations. */
export const rewardRules: readonly Rule[] = [
  {
    name: "reward_hacking",
    when: "The reward rises by a tenth of its range while success falls, or while success stays below 0.8 and lengths grow or shrink by half.",
    isOfRewards: true,
    look: (run) => {
      if (run.steps.length < LONG) return null;
      const range = run.max("critic/score/max", run.steps) - run.min("critic/score/min", run.steps);
      const [from, to] = [run.mean(SCORE, run.first), run.mean(SCORE)];
      const success = compareSuccess(run);
      if (success === null || to - from < Math.max(0.02, 0.1 * range)) return null;
      const [short, long] = [run.mean("response_length/mean", run.first), run.mean("response_length/mean")];
      const ratio = long / Math.max(1, short);
      const fell = success.before - success.after > 0.05;
      const stays = success.after < 0.8 && success.after - success.before < 0.02 && (ratio > 1.5 || ratio < 0.5);
      if (!fell && !stays) return null;
      const lengths =
        ratio > 1.5 || ratio < 0.5 ? `, and answers go from ${short.toFixed(0)} to ${long.toFixed(0)} tokens` : "";
      return {
        severity: "high",
        weight: 1,
        sentence: `The reward rises from ${shorten(from)} to ${shorten(to)} while ${success.where} ${fell ? "falls" : "stays"}: ${shorten(success.before)}, then ${shorten(success.after)}${lengths}`,
        remedy:
          "Read conversations with the highest rewards: the policy found what the reward pays for beside success; take that out of the reward, or hold the policy near the model (actor.use_kl_loss)",
        keys: ["custom_reward_function.path", "actor_rollout_ref.actor.use_kl_loss"],
        filter: "reward>0 && !success",
      };
    },
  },
  {
    name: "one_part",
    when: "Of several parts of the score one alone tells conversations apart over fifteen steps, and success does not rise.",
    isOfRewards: true,
    look: (run) => {
      if (run.steps.length < LONG) return null;
      const parts = describeParts(run);
      const total = parts.reduce((sum, { spread }) => sum + spread, 0);
      const alone = parts.find(({ spread }) => spread > 0.99 * total);
      const flat = parts.filter((part) => part !== alone);
      if (!alone || total === 0 || flat.length === 0) return null;
      const success = compareSuccess(run);
      if (success && success.after - success.before > 0.05) return null;
      return {
        severity: "medium",
        weight: 0.5,
        sentence: `All differences between rewards come from ${alone.name}: ${flat.map(({ name, mean }) => `${name} is ${shorten(mean)} for every conversation`).join(", ")}`,
        remedy:
          "Look why the others never differ, change their weights, or take easier rows, so that what matters is paid for too",
        keys: ["reward_model.rule_weight", "reward_model.model"],
        filter: null,
      };
    },
  },
  {
    name: "bonus_alone",
    when: "What is judged is the same for every conversation over fifteen steps: rewards differ by bonuses, step rewards or length alone.",
    isOfRewards: true,
    look: (run) => {
      if (run.steps.length < LONG || run.silence !== null) return null;
      const outcomes = run.values("reward/outcome/mean", run.steps);
      const isFlat = outcomes.length > 0 && outcomes.every((value) => value === outcomes[0]) && outcomes[0] === 0;
      const others = (["tools", "turns", "length"] as const).filter((part) =>
        run.values(`reward/${part}/mean`, run.steps).some((value) => value !== 0),
      );
      if (!isFlat || others.length === 0) return null;
      return {
        severity: "medium",
        weight: 0.6,
        sentence: `Every conversation is judged ${shorten(outcomes[0]!)} in all ${run.steps.length} steps, so that only ${others.join(" and ")} ${others.length > 1 ? "tell" : "tells"} them apart`,
        remedy: "Look whether answers that deserve a score get it; a bonus alone teaches to collect it",
        keys: [
          "custom_reward_function.path",
          "reward_model.aggregation.tool_weight",
          "reward_model.token_reward.tool_call_bonus",
        ],
        filter: "reward>0 && !success",
      };
    },
  },
];
