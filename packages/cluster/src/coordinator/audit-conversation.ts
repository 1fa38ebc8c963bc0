import { hasFailed } from "@cria/core";
import { findOtherText, makeReadCalls, RecordedAnswers, RecordedTokens, replayedLoops } from "@cria/records";
import { type ConversationWork, holdConversation, type UnjudgedTrajectory } from "@cria/rollout";
import type { CoordinatedRun } from "@cria/trainer";
import { pack } from "../jobs/pack.js";
import { compareBits } from "./audit.js";

/** What an audit of a conversation found. `open`: it could not be decided; `none`: it cannot be held again. */
export type Verdict = { is: "same" | "none" } | { is: "different" | "open"; reason: string };

type Run = Pick<CoordinatedRun, "policy" | "environment" | "signal">;

/**
 * What of a record cannot be true by itself: a reason to hold the conversation again, whoever held it. Null: nothing. What a judge is
 * shown are messages, and what is trained are tokens.
 */
export function findContradiction(
  { policy, environment }: Run,
  { row }: ConversationWork,
  held: UnjudgedTrajectory,
): string | null {
  // A conversation that was rewritten has no longer all that was said.
  const isRewritten = environment.multiTurn.useInferenceChatTemplate;
  if (!isReplayed({ environment }, row) || hasFailed(held) || isRewritten) return null;
  const { prompt } = row;
  if (!isEqual(held.messages.slice(0, prompt.length), prompt)) return "another prompt";
  return findOtherText(held, prompt.length, { engine: policy.engine, tokenizer: policy.tokenizer });
}

/**
 * Whether a conversation that a worker held is the one that the policy holds: it is held again, with what tools and users said in
 * the record, and all of the record but its times must be the same. Tools and interaction run, for what they give is rewarded; where
 * they answer otherwise than they did, what they gave cannot be compared. Of a worker of another class the tokens and logprobs stay
 * as they are: its sampler is another one.
 */
export async function auditConversation(
  { policy, environment, signal }: Run,
  work: ConversationWork,
  held: UnjudgedTrajectory,
  isOwnClass: boolean,
): Promise<Verdict> {
  const isRewritten = environment.multiTurn.useInferenceChatTemplate;
  if (!isReplayed({ environment }, work.row) || hasFailed(held) || (isRewritten && !isOwnClass)) return { is: "none" };
  const { tokenizer, engine } = policy;
  const record = {
    messages: held.messages,
    prompt_messages: work.row.prompt.length,
    finish_reason: held.finishReason,
    turns: held.timeline?.turns ?? [],
  };
  const readCalls = makeReadCalls(environment, work.row);
  let answered: string | null = null;
  const onOtherAnswer = (recorded: string, live: string) => {
    answered ??= `${quote(recorded)} there, ${quote(live)} here`;
  };
  const compare = async (isLive: boolean): Promise<string | null> => {
    const answers = new RecordedAnswers(record, { readCalls, isLive, onOtherAnswer });
    const steer = isOwnClass ? undefined : new RecordedTokens(engine, held).steer;
    try {
      const options = { ...environment, onWarning: undefined, tokenizer, signal, answers, steer };
      const again = await holdConversation(engine, work, options);
      if (again.error !== undefined) {
        answered ??= `it fails here: ${quote(again.error)}`;
        return again.error;
      }
      return compareRecords(held, again, isLive);
    } catch (error) {
      signal?.throwIfAborted();
      // It says something that the record has no answer to: its texts are others.
      return `the conversation goes another way: ${(error as Error).message.split("\n", 1)[0]}`;
    }
  };
  const reason = await compare(true);
  if (reason === null) return { is: "same" };
  if (answered === null) return { is: "different", reason };
  // Who answers otherwise each time is no proof: what remains follows from the answers of the record.
  const other = await compare(false);
  if (other !== null) return { is: "different", reason: other };
  return { is: "open", reason: `a tool or an interaction answered otherwise: ${answered}` };
}

const isReplayed = ({ environment }: Pick<Run, "environment">, row: ConversationWork["row"]) =>
  replayedLoops.includes(row.agentName ?? environment.defaultAgentLoop);

/** What tools and interaction gave beside what they said. */
const earnings = ["turnScores", "toolRewards", "toolScore", "interactionScore"] as const;
const fields = [
  ...["promptLength", "finishReason", "numTurns", "messages", "images", "segments", "toolSchemas", "sampling"],
  "score",
] as const;

function compareRecords(held: UnjudgedTrajectory, own: UnjudgedTrajectory, isLive: boolean): string | null {
  const bits =
    compareBits("token", held.tokenIds, own.tokenIds) ??
    compareBits("mask", held.responseMask, own.responseMask) ??
    compareBits("logprob", held.rolloutLogprobs, own.rolloutLogprobs);
  if (bits !== null) return bits;
  const pick = ({ extraFields, ...record }: UnjudgedTrajectory): Record<string, unknown> => ({
    ...record,
    extraFields: isLive ? extraFields : { tokenization: extraFields.tokenization },
    isUnscored: isLive && record.scoreError !== undefined,
  });
  const [found, wanted] = [pick(held), pick(own)];
  for (const field of [...fields, "extraFields", "isUnscored", ...(isLive ? earnings : [])])
    if (!isEqual(found[field], wanted[field])) return `${field}: ${show(found[field])}, here ${show(wanted[field])}`;
  return null;
}

function isEqual(one: unknown, other: unknown): boolean {
  const [left, right] = [one, other].map((value) => pack({ value }, () => undefined));
  return Buffer.compare(left!, right!) === 0;
}

const quote = (text: string) => JSON.stringify(text.slice(0, 100));
const show = (value: unknown) =>
  (JSON.stringify(value, (_, each) => (ArrayBuffer.isView(each) ? "bytes" : each)) ?? "nothing").slice(0, 200);
