import { hasFailed } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { RecordedAnswers, RecordedTokens } from "@cria/records";
import { findOtherText, makeReadCalls } from "@cria/records/internal";
import { agentLoops, type ConversationWork } from "@cria/rollout";
import { holdConversation } from "@cria/rollout/internal";
import type { CoordinatedRun } from "@cria/trainer";
import { auditAgent, repeatAgent } from "./audit-agent.js";
import { compareFields, compareTokens, isEqual, type Verdict } from "./compare-records.js";

type Run = Pick<CoordinatedRun, "policy" | "environment" | "signal">;

/**
 * A contradiction within a record, which calls for a replay; null: there is none. Judges see the messages, but training
 * uses the tokens, so both must agree.
 */
export async function findContradiction(
  run: Run,
  work: ConversationWork,
  held: UnjudgedTrajectory,
): Promise<string | null> {
  const { policy, environment } = run;
  const { prompt } = work.row;
  const recorded = findRecorded(run, work.row);
  if (recorded === undefined || hasFailed(held)) return null;
  if (recorded === "calls") return repeatAgent(run, work, held, "record");
  // A rewritten conversation no longer has all of its messages.
  if (environment.multiTurn.useInferenceChatTemplate) return null;
  if (!isEqual(held.messages.slice(0, prompt.length), prompt)) return "another prompt";
  return findOtherText(held, prompt.length, { engine: policy.engine, tokenizer: policy.tokenizer });
}

/**
 * Replays a worker's conversation with the record's answers of tools and users; the whole record except its times must
 * be the same. Tools and interaction run, since their rewards count. If they answer differently this time, their
 * rewards cannot be compared. For a worker of another class the record's tokens and logprobs are kept, since its
 * sampler computes other ones.
 */
export async function auditConversation(
  run: Run,
  work: ConversationWork,
  held: UnjudgedTrajectory,
  isOwnClass: boolean,
): Promise<Verdict> {
  const { policy, environment, signal } = run;
  const recorded = findRecorded(run, work.row);
  if (recorded === undefined || hasFailed(held)) return { is: "none" };
  if (recorded === "calls") return auditAgent(run, work, held, isOwnClass);
  if (environment.multiTurn.useInferenceChatTemplate && !isOwnClass) return { is: "none" };
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
      // The policy says something for which the record has no answer: its texts differ.
      return `the conversation goes another way: ${(error as Error).message.split("\n", 1)[0]}`;
    }
  };
  const reason = await compare(true);
  if (reason === null) return { is: "same" };
  if (answered === null) return { is: "different", reason };
  // A tool that answers differently each time proves nothing: the rest follows from the record's answers.
  const other = await compare(false);
  if (other !== null) return { is: "different", reason: other };
  return { is: "open", reason: `a tool or an interaction answered differently: ${answered}` };
}

/** The recorded inputs of a row's conversation, by its agent loop. */
function findRecorded({ environment }: Pick<Run, "environment">, row: ConversationWork["row"]) {
  const { agentLoops: loops = agentLoops, defaultAgentLoop } = environment;
  return loops.find(row.agentName ?? defaultAgentLoop)?.recorded;
}

/** Results of tools and interaction besides their texts. */
const earnings = ["turnScores", "toolRewards", "toolScore", "interactionScore"] as const;
const fields = [
  ...["promptLength", "finishReason", "numTurns", "messages", "images", "segments", "toolSchemas", "sampling"],
  "score",
] as const;

function compareRecords(held: UnjudgedTrajectory, own: UnjudgedTrajectory, isLive: boolean): string | null {
  const bits = compareTokens(held, own);
  if (bits !== null) return bits;
  const pick = ({ extraFields, ...record }: UnjudgedTrajectory): Record<string, unknown> => ({
    ...record,
    extraFields: isLive ? extraFields : { tokenization: extraFields.tokenization },
    isUnscored: isLive && record.scoreError !== undefined,
  });
  return compareFields(pick(held), pick(own), [
    ...fields,
    ...["extraFields", "isUnscored"],
    ...(isLive ? earnings : []),
  ]);
}

const quote = (text: string) => JSON.stringify(text.slice(0, 100));
