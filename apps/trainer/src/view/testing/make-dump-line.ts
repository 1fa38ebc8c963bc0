/** The shortest possible line of a dump. */
export function makeDumpLine(more: Record<string, unknown> = {}): string {
  const question = String(more.question ?? "1 + 1?");
  const line = {
    format_version: 3,
    step: 1,
    uid: "sums/0",
    sample: 0,
    row: 0,
    place: "train.jsonl, line 1",
    data_source: "sums",
    reward: 1,
    score: 1,
    success: true,
    parts: [],
    advantage: 0.5,
    error: null,
    finish_reason: "stop",
    num_turns: 2,
    messages: [
      { role: "user", content: question },
      { role: "assistant", content: String(more.answer ?? "2") },
    ],
    prompt_messages: 1,
    tools: [],
    tool_schemas: [],
    prompt_length: 2,
    token_ids: [1, 2, 3, 4],
    response_mask: [0, 0, 1, 1],
    token_level_rewards: [0, 0, 0, 1],
    rollout_logprobs: [0, 0, -0.5, -1],
    spans: [],
    turns: [],
    turn_scores: [],
    tool_rewards: [],
    metrics: {},
    ...more,
  };
  return `${JSON.stringify(line)}\n`;
}
