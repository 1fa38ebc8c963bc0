import type { ShardGradient, ShardScores } from "@cria/core";
import {
  type ConversationWork,
  holdConversation,
  makeReadCalls,
  RecordedAnswers,
  replayedLoops,
  type UnjudgedTrajectory,
} from "@cria/rollout";
import type { CoordinatedRun } from "@cria/trainer";

/**
 * Whether a conversation that a worker held is the one that the policy holds: it is held again, with what tools and users said in
 * the record, and every sampled token and its logprob must be the same bits.
 * @returns what differs; null: nothing; undefined: it cannot be held again.
 */
export async function auditConversation(
  { policy, environment, signal }: Pick<CoordinatedRun, "policy" | "environment" | "signal">,
  work: ConversationWork,
  held: UnjudgedTrajectory,
): Promise<string | null | undefined> {
  const loop = work.row.agentName ?? environment.defaultAgentLoop;
  if (!replayedLoops.includes(loop) || held.error !== undefined || held.finishReason === "aborted") return undefined;
  const answers = new RecordedAnswers(
    {
      messages: held.messages,
      prompt_messages: work.row.prompt.length,
      finish_reason: held.finishReason,
      turns: held.timeline?.turns ?? [],
    },
    { readCalls: makeReadCalls(environment, work.row) },
  );
  let again: UnjudgedTrajectory;
  try {
    again = await holdConversation(policy.engine, work, {
      ...environment,
      tokenizer: policy.tokenizer,
      signal,
      answers,
    });
  } catch (error) {
    signal?.throwIfAborted();
    // It says something that the record has no answer to: its texts are others.
    return `the conversation goes another way: ${(error as Error).message.split("\n", 1)[0]}`;
  }
  return (
    compareBits("token", held.tokenIds, again.tokenIds) ??
    compareBits("mask", held.responseMask, again.responseMask) ??
    compareBits("logprob", held.rolloutLogprobs, again.rolloutLogprobs)
  );
}

/** Whether a gradient is the one that this engine computes. @returns what differs; null: nothing. */
export const auditGradient = (found: ShardGradient, own: ShardGradient): string | null =>
  found.loss === own.loss ? compareBits("value of a gradient", found.gradient, own.gradient) : "another loss";

/** Whether scores are those that this engine computes. @returns what differs; null: nothing. */
export const auditScores = (found: ShardScores, own: ShardScores): string | null =>
  compareBits("logprob", found.logprobs, own.logprobs) ??
  compareBits("entropy", found.entropy, own.entropy) ??
  compareBits("sum of squares", found.squares ?? [], own.squares ?? []);

function compareBits(what: string, found: ArrayLike<number>, own: ArrayLike<number>): string | null {
  if (found.length !== own.length) return `${found.length} instead of ${own.length}: ${what}s`;
  for (let i = 0; i < own.length; i++)
    if (!Object.is(found[i], own[i])) return `${what} ${i} is ${found[i]}, here ${own[i]}`;
  return null;
}
