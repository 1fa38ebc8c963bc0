import { adviseExamples, percent, type Rule } from "./rule.js";
import { FEW, type RunHistory, SCORE } from "./run-history.js";

/** True if only a few lucky conversations get more than nothing. */
function areFew(run: RunHistory): boolean {
  return run.min("critic/score/min") <= 0 && run.place(run.mean(SCORE)) < FEW;
}

/** Rules for runs without a learning signal; they report nothing about others. */
export const noSignalRules: readonly Rule[] = [
  {
    name: "no_calls",
    when: "Nothing is learned: no conversation calls a tool, and none is given a reward above 0.",
    look: (run) => {
      if (run.silence === null || !run.context.hasTools) return null;
      if (run.mean("tool_call_counts/mean") > 0 || run.max("reward/score/mean") > 0) return null;
      return {
        severity: "high",
        weight: 0.1,
        isCause: true,
        sentence: "the policy never calls a tool, and no conversation is given a reward above 0",
        remedy: `Say in the prompt that there are tools, check that multi_turn.format is how the model writes calls, or ${adviseExamples(run)}`,
        keys: ["actor_rollout_ref.rollout.multi_turn.format"],
        filter: null,
      };
    },
  },
  {
    name: "no_reward",
    when: "Nothing is learned, and no conversation is given a reward above 0, or one in fifty now and then.",
    look: (run) => {
      const highest = run.max("critic/score/max");
      if (run.silence === null || !Number.isFinite(highest) || (highest > 0 && !areFew(run))) return null;
      const isSame = highest === run.min("critic/score/min");
      return {
        severity: "high",
        weight: 0.05,
        isCause: true,
        sentence: isSame
          ? `every conversation is given the same reward, ${highest}`
          : `${highest > 0 ? "hardly any" : "no"} conversation is given a reward above 0`,
        remedy: `Look whether answers that deserve a reward get it; if none does, begin with easier rows, let a model that can do the task teach it (docs/teachers.md), or ${adviseExamples(run)}; docs/which-method.md compares them`,
        keys: ["custom_reward_function.path", "data.train_files", "distillation.enabled"],
        filter: null,
      };
    },
  },
  {
    name: "sampled_worse",
    when: "Nothing is learned from sampled conversations, and a twentieth or more of those held out succeed, which are answered greedily.",
    look: (run) => {
      const heldOut = run.heldOut.at(-1);
      if (run.silence === null || heldOut === undefined || heldOut < FEW) return null;
      // The earlier success of a policy that is now broken does not count.
      const isPoor = run.min("critic/score/min") <= 0 && run.place(run.max(SCORE, run.steps)) < 2 * FEW;
      if (!isPoor || !run.isOff("actor_rollout_ref.rollout.val_kwargs.do_sample")) return null;
      const temperature = run.readConfig("actor_rollout_ref.rollout.temperature") ?? 1;
      return {
        severity: "high",
        weight: 0.95,
        isCause: true,
        sentence: `the policy is right when it takes the likeliest token, on ${percent(heldOut)} of the held-out rows, and hardly ever when it samples, at a temperature of ${temperature}`,
        remedy: `Sample cooler (rollout.temperature ${temperature > 0.5 ? 0.5 : temperature / 2}), so that some conversations succeed, or ${adviseExamples(run)}`,
        keys: ["actor_rollout_ref.rollout.temperature"],
        filter: null,
      };
    },
  },
  {
    name: "toy_policy",
    when: "Nothing is learned, and the model is the policy that comes with Cria.",
    look: (run) => {
      const model = "actor_rollout_ref.model.path";
      if (run.silence === null || !/(^|[\\/])cria-tiny\.gguf$/.test(run.readText(model) ?? "")) return null;
      return {
        severity: "medium",
        weight: 0.3,
        sentence:
          "the embedded policy has half a million parameters and 512 tokens, and knows word problems with a calculator and a code game: other tasks and tools are mostly beyond it",
        remedy: "Take a model of yours, such as hf:Qwen/Qwen3-0.6B-GGUF:Q8_0",
        keys: [model],
        filter: null,
      };
    },
  },
  {
    name: "same_reward",
    when: "Nothing is learned, and all conversations are given the same reward above 0.",
    look: (run) => {
      const highest = run.max("critic/score/max");
      if (run.silence === null || highest <= 0 || highest !== run.min("critic/score/min")) return null;
      return {
        severity: "high",
        weight: 0.05,
        isCause: true,
        sentence: `every conversation is given the same reward, ${highest}`,
        remedy: "Look whether the reward tells good answers from bad ones; if it does, take harder rows",
        keys: ["custom_reward_function.path", "data.train_files"],
        filter: null,
      };
    },
  },
  {
    name: "no_spread",
    when: "Nothing is learned: rewards differ from prompt to prompt, and never within one.",
    look: (run) => {
      const highest = run.max("critic/score/max");
      if (run.silence === null || highest <= 0 || highest === run.min("critic/score/min") || areFew(run)) return null;
      return {
        severity: "high",
        weight: 0.04,
        isCause: true,
        sentence: "the conversations of each prompt are too much alike",
        remedy:
          "Raise rollout.temperature or rollout.n, or take rows that the policy sometimes solves and sometimes does not",
        keys: ["actor_rollout_ref.rollout.temperature", "actor_rollout_ref.rollout.n"],
        filter: null,
      };
    },
  },
];
