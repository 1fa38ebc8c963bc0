import type { MetricSection } from "../metric.js";

export const timeMetrics: MetricSection = {
  title: "Time and work",
  metrics: [
    { name: "training/global_step", meaning: "step of the run" },
    { name: "training/epoch", meaning: "pass over the data" },
    {
      name: "training/off_policy/trajectory_spans/{mean,max,min}",
      unit: "versions",
      meaning: "versions of the policy within a conversation; 1 with `partial_rollout: carry_on`",
      when: "a lag",
    },
    {
      name: "training/off_policy/{trajectory_staleness,trajectory_staleness_worst}/{mean,max,min}",
      unit: "updates",
      meaning:
        "updates between the policy that sampled a conversation and the one that learns from it, of its newest and its oldest token",
      when: "a lag",
    },
    {
      name: "training/off_policy/depends_on_clock",
      unit: "0 or 1",
      meaning:
        "1 if `partial_rollout` lets the clock decide which version samples, so that another run of the same seed may learn otherwise; 0 if the schedule decides",
      when: "a lag",
    },
    {
      name: "timing_s/{gen,reward,old_log_prob,ref,teacher,values,adv,update_critic,update_actor,update_kl,testing,save_checkpoint,step}",
      unit: "s",
      meaning:
        "rollouts; judging that the step waited for; forward passes of actor, reference, teachers and critic; advantages; updates; how far they moved; validation; checkpoint; all of the step but the last two",
    },
    {
      name: "timing_s/wall/{decoding,waiting_for_tools,waiting_for_groups,scoring,training,other}",
      unit: "s",
      meaning:
        "parts of the step, which add up to `timing_s/step`: one of its conversations generates; no conversation of any step generates, and some wait for tools or interactions; the step waits for its conversations otherwise, for slots that later steps hold or for other machines; judging, logprobs and values; advantages and updates; the rest",
    },
    {
      name: "timing_s/agent_loop/{generate_sequences,tool_calls,interactions}/{mean,max,min}",
      unit: "s",
      meaning: "a conversation's time in the engine, in tools and in interactions",
    },
    { name: "timing_s/tool/<tool>", unit: "s", meaning: "a call of that tool" },
    {
      name: "timing_per_token_ms/{gen,ref,teacher,values,adv,update_critic,update_actor}",
      unit: "ms",
      meaning: "time for each token: sampled and observed ones for `gen`, all for the others",
    },
    {
      name: "perf/max_memory_{allocated,reserved}_gb",
      unit: "GiB",
      meaning:
        "most memory of the process that was resident at once so far; what lies on a GPU is not in it. Both are one number: no allocator that reserves more lies between",
    },
    { name: "perf/cpu_memory_used_gb", unit: "GiB", meaning: "memory of the process that is resident now" },
    {
      name: "perf/padding_ratio",
      unit: "share",
      meaning: "share of the tokens that updates evaluate which only fill up rows",
    },
    { name: "perf/throughput", unit: "tokens/s", meaning: "tokens a second" },
    { name: "perf/time_per_step", unit: "s", meaning: "the step's time" },
    { name: "perf/total_num_tokens", unit: "tokens", meaning: "tokens of prompts and responses" },
    {
      name: "engine/{prefill_tokens,decode_tokens,reused_tokens}",
      unit: "tokens",
      meaning:
        "tokens evaluated before sampling; sampled (those of groups that were left out too); whose KV was there already",
    },
  ],
};
