import { percent, type Rule, shorten } from "./rule.js";

/** Rules about text, tokens and the two engines. */
export const engineRules: readonly Rule[] = [
  {
    name: "tokenization",
    when: "The tokens of one in twenty conversations are not those of the conversation rendered again.",
    look: (run) => {
      const share = run.mean("agent_loop/tokenization_mismatch/mean");
      if (share < 0.05 || run.steps.length < 3) return null;
      return {
        severity: "medium",
        weight: share,
        sentence: `The tokens of ${percent(share)} of the conversations are not those that the chat template gives the whole conversation`,
        remedy:
          "Check the chat template: what it writes for earlier turns must be what was sampled; use_inference_chat_template trains on what it really writes",
        keys: [
          "actor_rollout_ref.rollout.multi_turn.use_inference_chat_template",
          "actor_rollout_ref.rollout.multi_turn.tokenization_sanity_check_mode",
        ],
        filter: "metrics.tokenization_mismatch>0",
      };
    },
  },
  {
    name: "sampler_differs",
    when: "The probabilities of sampled tokens differ by 0.02 in the mean between sampler and training, over five steps.",
    look: (run) => {
      const difference = run.mean("training/rollout_probs_diff_mean");
      if (difference < 0.02 || run.steps.length < 5) return null;
      return {
        severity: "medium",
        weight: Math.min(1, 5 * difference),
        sentence: `The sampler gives its tokens other probabilities than the training does: they differ by ${shorten(difference)} in the mean`,
        remedy:
          "Correct for it (algorithm.rollout_correction.rollout_is), and look whether both compute with the same kernels (cria doctor)",
        keys: ["algorithm.rollout_correction.rollout_is", "trainer.device"],
        filter: null,
      };
    },
  },
  {
    name: "padding",
    when: "A fifth of the tokens that updates evaluate only fill up rows, over five steps.",
    look: (run) => {
      const share = run.mean("perf/padding_ratio");
      if (share < 0.2 || run.steps.length < 5) return null;
      return {
        severity: "low",
        weight: share,
        sentence: `${percent(share)} of the tokens that updates evaluate only fill up rows of unlike length`,
        remedy: "Lower actor.ppo_max_token_len: a smaller micro-batch holds rows that are more alike",
        keys: ["actor_rollout_ref.actor.ppo_max_token_len"],
        filter: null,
      };
    },
  },
];
