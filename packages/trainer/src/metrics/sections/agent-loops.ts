import type { MetricSection } from "../metric.js";

export const agentLoopsMetrics: MetricSection = {
  title: "Counters of agent loops",
  intro:
    "`agent_loop/<counter>/mean` is the mean over all conversations of the step, failed ones included. The same counters, as sums, stand in `metrics` of each line in `rollouts/<step>.jsonl`.",
  metrics: [
    { name: "agent_loop/tool_error_rate", unit: "share", meaning: "`tool_errors` for each tool call" },
    {
      name: "agent_loop/tool_errors/mean",
      unit: "calls",
      meaning: "calls that gave no ordinary answer; the kinds follow",
    },
    {
      name: "agent_loop/tool_invalid_call/mean",
      unit: "calls",
      meaning: "calls that are no valid JSON, or none of the format",
    },
    {
      name: "agent_loop/tool_unknown_tool/mean",
      unit: "calls",
      meaning: "calls of a tool that does not exist, or that the row does not have",
    },
    {
      name: "agent_loop/tool_invalid_arguments/mean",
      unit: "calls",
      meaning: "calls whose arguments do not fit the tool's schema",
    },
    {
      name: "agent_loop/tool_unavailable/mean",
      unit: "calls",
      meaning: "calls of a tool whose instance could not be created",
    },
    { name: "agent_loop/tool_timeout/mean", unit: "calls", meaning: "calls that took longer than `tool_timeout_s`" },
    { name: "agent_loop/tool_exception/mean", unit: "calls", meaning: "calls that threw" },
    { name: "agent_loop/tool_bad_response/mean", unit: "calls", meaning: "calls whose result has no text" },
    {
      name: "agent_loop/tool_bad_image/mean",
      unit: "images",
      meaning: "images of tools that cannot be read or are too large; the model reads why",
    },
    {
      name: "agent_loop/too_many_calls/mean",
      unit: "calls",
      meaning: "calls beyond `max_parallel_calls`, which were not run; no `tool_errors`",
    },
    {
      name: "agent_loop/tool_truncated/mean",
      unit: "answers",
      meaning: "answers that were cut to `max_tool_response_length` or `_chars`",
    },
    {
      name: "agent_loop/tool_media_omitted/mean",
      unit: "media",
      meaning: "images, videos and audio in answers, which the policy cannot see; its message names them",
    },
    {
      name: "agent_loop/tool_bad_reward/mean",
      unit: "rewards",
      meaning: "rewards of tools that were no number and count as 0",
    },
    {
      name: "agent_loop/tool_{create,reward,release}_exception/mean",
      unit: "calls",
      meaning: "`create`, `calcReward`, `release` that threw or took too long",
    },
    { name: "agent_loop/cut_turns/mean", unit: "turns", meaning: "turns that were cut at `max_tokens_per_turn`" },
    { name: "agent_loop/interaction_turns/mean", unit: "answers", meaning: "answers of the interaction" },
    {
      name: "agent_loop/interaction_bad_score/mean",
      unit: "scores",
      meaning: "scores of interactions that were no number and count as 0",
    },
    {
      name: "agent_loop/interaction_{score,finalize}_exception/mean",
      unit: "calls",
      meaning: "`calculateScore`, `finalizeInteraction` that threw or took too long",
    },
    {
      name: "agent_loop/chat_calls/mean",
      unit: "calls",
      meaning: "calls of the policy by agents that call it themselves",
      when: "an agent",
    },
    {
      name: "agent_loop/chat_roots/mean",
      unit: "conversations",
      meaning: "conversations that such an agent began: itself, sub-agents, a history that was not known",
      when: "an agent",
    },
    {
      name: "agent_loop/chat_branches/mean",
      unit: "times",
      meaning: "times that it went on from a history that it had changed",
      when: "an agent",
    },
    {
      name: "agent_loop/chat_siblings/mean",
      unit: "answers",
      meaning: "further answers to a question that was answered",
      when: "an agent",
    },
    {
      name: "agent_loop/chat_retries/mean",
      unit: "questions",
      meaning: "questions that were asked again before their answer was heard",
      when: "an agent",
    },
    {
      name: "agent_loop/chat_sampling_overridden/mean",
      unit: "calls",
      meaning: "calls that asked for another sampling than the training's; it was not taken",
      when: "an agent",
    },
    {
      name: "agent_loop/rewritten_turns/mean",
      unit: "turns",
      meaning: "turns before which the template rewrote earlier ones, with `use_inference_chat_template`",
    },
    {
      name: "agent_loop/rewritten_tokens/mean",
      unit: "tokens",
      meaning: "sampled tokens that were rewritten so, and are not trained on",
    },
    {
      name: "agent_loop/tokenization_mismatch/mean",
      unit: "share",
      meaning:
        "share of conversations whose tokens are not those of the rendered conversation: a fault of template or tokenizer",
    },
    {
      name: "agent_loop/tokenization_drift/mean",
      unit: "share",
      meaning:
        "share whose text is that of the rendered conversation, with other tokens in what was sampled: a model's choice",
    },
    {
      name: "agent_loop/tokenization_other_end/mean",
      unit: "share",
      meaning: "share in which the model ended a turn with another end token than the template's",
    },
    {
      name: "agent_loop/tokenization_unchecked/mean",
      unit: "share",
      meaning:
        "share that could not be compared: a prompt that was cut, bytes that are no text, a template that refuses the conversation",
    },
    {
      name: "agent_loop/tokenization_rewritten/mean",
      unit: "share",
      meaning:
        "share whose template says an earlier turn in other words now, as one that drops reasoning does: no fault",
    },
    {
      name: "agent_loop/tokenization_unsplit/mean",
      unit: "renderings",
      meaning:
        "renderings in which others spell control tokens, and it could not be told where: tokenized as the template prints them",
    },
    {
      name: "agent_loop/rescored_tokens/mean",
      unit: "tokens",
      meaning: "sampled tokens whose logprobs an agent loop of your own left out: the policy scored them once more",
    },
    {
      name: "agent_loop/continuations/mean",
      unit: "conversations",
      meaning: "conversations that went on from the ends of turns to measure them ([trees](trees.md))",
      when: "`adv_estimator: vine`",
    },
    {
      name: "agent_loop/continuation_tokens/mean",
      unit: "tokens",
      meaning: "tokens that were sampled for them",
      when: "`adv_estimator: vine`",
    },
    {
      name: "agent_loop/<counter>/mean",
      meaning: "whatever an agent loop of your own counts in its `metrics`",
      when: "an agent loop of your own",
    },
  ],
};
