import type { MetricSection } from "../metric.js";

export const rolloutsMetrics: MetricSection = {
  title: "Rollouts",
  metrics: [
    {
      name: "response_length/{mean,max,min}",
      unit: "tokens",
      meaning: "tokens after the prompt, those of tools and users included",
    },
    {
      name: "response_length/clip_ratio",
      unit: "share",
      meaning: "share of conversations that ended because no token was left",
    },
    {
      name: "response_length_non_aborted/{mean,max,min}",
      unit: "tokens",
      meaning: "tokens after the prompt of conversations that were not aborted",
    },
    {
      name: "response_length_non_aborted/clip_ratio",
      unit: "share",
      meaning: "share of these that ended because no token was left",
    },
    { name: "prompt_length/{mean,max,min}", unit: "tokens", meaning: "tokens of the prompt" },
    {
      name: "prompt_length/clip_ratio",
      unit: "share",
      meaning: "share of prompts with at least `data.max_prompt_length` tokens",
    },
    {
      name: "response/turn_limit_ratio",
      unit: "share",
      meaning: "share of conversations that ended with a tool call because no turn was left",
    },
    {
      name: "response/aborted_ratio",
      unit: "share",
      meaning: "share of all conversations that were aborted from outside",
    },
    {
      name: "num_turns/{mean,max,min}",
      unit: "turns",
      meaning: "assistant turns, and those of tools and users after the prompt, and 1 for the prompt",
    },
    {
      name: "tool_call_counts/{mean,max,min}",
      unit: "calls",
      meaning: "tool calls of a conversation, whatever came of them",
    },
    {
      name: "rollout/failed",
      unit: "conversations",
      meaning: "conversations that the environment broke, and those whose judge failed",
    },
    { name: "rollout/failed_ratio", unit: "share", meaning: "their share of all conversations" },
    {
      name: "rollout/judge_failed",
      unit: "conversations",
      meaning: "those of them whose judge or reward function failed",
    },
    {
      name: "rollout/silent",
      unit: "conversations",
      meaning: "conversations in which an agent did not call the policy: their groups leave them out",
    },
    {
      name: "rollout/refilled",
      unit: "times",
      meaning: "times that a conversation was sampled again, with `rollout.on_failure: refill`",
    },
    {
      name: "rollout/dropped_groups",
      unit: "groups",
      meaning: "groups that failures left with too few conversations to compare",
    },
    {
      name: "rollout/samples/{mean,max,min}",
      unit: "conversations",
      meaning: "conversations of a prompt, those that failed too: rows may say their own number",
    },
    { name: "rollout/kept", unit: "conversations", meaning: "conversations that the step learns from" },
    {
      name: "train/pf_ppo_kept_ratio",
      unit: "share",
      meaning: "share of the conversations that PF-PPO drew at least once",
      when: "`algorithm.use_pf_ppo`",
    },
    {
      name: "train/num_gen_batches",
      unit: "batches",
      meaning: "batches of prompts that were rolled out",
      when: "`algorithm.filter_groups`",
    },
    {
      name: "tree/branches",
      unit: "conversations",
      meaning: "conversations that went on from a turn of another one ([trees](trees.md))",
      when: "`rollout.tree`",
    },
    { name: "tree/turns/mean", unit: "turns", meaning: "turns that each of them took over", when: "`rollout.tree`" },
    {
      name: "tree/shared_tokens",
      unit: "tokens",
      meaning: "tokens of these turns and their replies: neither sampled nor evaluated again",
      when: "`rollout.tree`",
    },
    {
      name: "tree/own_tokens",
      unit: "tokens",
      meaning: "all further tokens of these conversations",
      when: "`rollout.tree`",
    },
    {
      name: "replay/groups",
      unit: "groups",
      meaning: "groups of earlier steps that the step learns from once more",
      when: "`algorithm.replay`",
    },
    {
      name: "replay/conversations",
      unit: "conversations",
      meaning: "conversations of these groups",
      when: "`algorithm.replay`",
    },
    {
      name: "replay/age/{mean,max,min}",
      unit: "steps",
      meaning: "steps since each of these groups was learned from first",
      when: "`algorithm.replay`",
    },
    {
      name: "replay/weight/{mean,max,min}",
      meaning: "importance weights of their sampled tokens, by `rollout_correction`",
      when: "`algorithm.replay`",
    },
  ],
};
