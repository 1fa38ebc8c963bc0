import { basename } from "node:path";
import { DataError } from "@cria/core";
import { checkLayout, trajectorySchema, type UnjudgedTrajectory } from "@cria/episodes";
import { readFields } from "@cria/episodes/internal";
import type { DatasetRow } from "@cria/rollout";
import { countPromptMessages, describeData, type FoundToolCalls, VECTOR } from "@cria/rollout/internal";
import { toJson } from "./describe-trajectories.js";
import type { DumpLine } from "./dump-line.js";

/** Keys in `extra` that come from a loop or the run; all others come from the judge. */
const KEPT_EXTRAS = ["full_prompt", "tokenization"];

/** Failures in which the call never reached its tool. */
const NOT_CALLED = ["invalid_call", "unknown_tool", "invalid_arguments", "too_many_calls"];

/**
 * Restores a dumped conversation as it was before it was judged.
 *
 * If its judge failed, the dump lacks mask, step rewards and log-probabilities: the mask then covers the assistant's
 * turns, and the others stay empty.
 * @returns null when the conversation itself failed, or no mask can be made: there is nothing to judge.
 * @throws DataError "data/bad-dump" when fields of the line contradict each other; it names the key.
 */
export function restoreTrajectory(line: DumpLine): UnjudgedTrajectory | null {
  const isUnjudged = line.metrics.reward_failed === 1;
  if (!isUnjudged && (line.error !== null || line.finish_reason === "aborted")) return null;
  const responseMask = isUnjudged ? makeMask(line) : line.response_mask;
  if (responseMask === null) return null;
  const { failed: _, reward_failed: __, ...metrics } = line.metrics;
  const place = (entries: DumpLine["turn_scores"]) =>
    entries.map((entry) => ({ value: entry?.value, tokenIndex: entry?.token_index }));
  const hasLogprobs = !isUnjudged && line.rollout_logprobs.length > 0;
  const given = {
    tokenIds: line.token_ids,
    promptLength: line.prompt_length,
    responseMask,
    rolloutLogprobs: hasLogprobs ? line.rollout_logprobs : new Float32Array(line.token_ids.length),
    messages: line.messages,
    ...(line.segments ? { segments: line.segments } : {}),
    finishReason: line.finish_reason,
    numTurns: line.num_turns,
    turnScores: place(line.turn_scores),
    toolRewards: place(line.tool_rewards),
    metrics,
    extraFields: Object.fromEntries(Object.entries(line.extra).filter(([key]) => KEPT_EXTRAS.includes(key))),
    score: line.parts.find(({ by }) => by === "the agent")?.value ?? null,
    toolScore: line.rewards.tool_score,
    interactionScore: line.rewards.interaction_score,
  };
  const refuse = refuseIn(line);
  const restored = readFields(dumpedSchema, given, refuse);
  checkLayout(restored, { isVector: (id) => id === VECTOR }, refuse);
  return {
    rowIndex: line.row ?? -1,
    uid: line.uid,
    sampleIndex: line.sample,
    dataSource: line.data_source,
    ...restored,
  };
}

/** Judges do not see turns. */
const dumpedSchema = trajectorySchema.omit({ turns: true, transitions: true });

const refuseIn =
  ({ uid, sample }: DumpLine) =>
  (field: string, expected: string, received: unknown): never => {
    throw new DataError("cannot be judged again", {
      code: "data/bad-dump",
      subject: `conversation ${sample} of ${uid}, ${nameKey(field)}`,
      expected,
      received: describeData(received),
    });
  };

/** Converts a trajectory's field name to the dump's. */
const nameKey = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** 1 on the assistant's turns that the policy sampled; null if the dump has none. */
function makeMask({ token_ids, turns }: DumpLine): Uint8Array | null {
  const mask = new Uint8Array(token_ids.length);
  for (const { role, start, end, sampled_by } of turns)
    if (role === "assistant" && sampled_by === undefined) mask.fill(1, start, end);
  return mask.includes(1) ? mask : null;
}

/** Recorded calls of the policy by turn. In a turn without answers, no call is known to be valid. */
export function listRecordedCalls({ turns }: DumpLine): FoundToolCalls[] {
  return turns.flatMap(({ tool_calls, end, sampled_by }, i) => {
    if (!tool_calls || sampled_by !== undefined) return [];
    const answers = turns[i + 1]?.failures ?? [];
    const valid = answers.filter((failure) => failure === null || !NOT_CALLED.includes(failure)).length;
    return [{ start: tool_calls.start, end: tool_calls.end, lastToken: end - 1, valid }];
  });
}

/** True if the conversation matches the row, whose data may have changed since. */
export function isOfRow(line: DumpLine, row: DatasetRow): boolean {
  if (row.dataSource !== line.data_source) return false;
  const truth = toJson(row.groundTruth);
  if (JSON.stringify(truth) !== JSON.stringify(line.ground_truth)) return false;
  // An agent's prompt may differ from its row's.
  const isAgents = line.turns.some(({ call }) => call !== undefined);
  return truth !== null || isAgents || countPromptMessages(row, line.messages) > 0;
}

/** Restores a row from its line: all but `extra_info`. */
export function restoreRow(line: DumpLine): DatasetRow {
  return {
    index: line.row ?? -1,
    uid: line.uid,
    place: line.place === null ? "a dump" : basename(line.place),
    prompt: line.messages.slice(0, line.prompt_messages),
    dataSource: line.data_source,
    groundTruth: line.ground_truth ?? undefined,
    extraInfo: { need_tools_kwargs: false, tools_kwargs: undefined },
  };
}
