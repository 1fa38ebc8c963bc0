import { listCalls, type UnjudgedTrajectory } from "@cria/episodes";
import { RecordedTokens } from "@cria/records";
import { type ConversationWork, holdConversation } from "@cria/rollout";
import type { CoordinatedRun } from "@cria/trainer";
import { compareFields, compareTokens, type Verdict } from "./compare-records.js";

type Run = Pick<CoordinatedRun, "policy" | "environment" | "signal">;

/** Who says the policy's words when an agent's conversation is held again: the policy, or the record itself. */
type Speaker = "policy" | "record";

/**
 * Whether what the policy says in an agent's record is what it says here, to the calls that the record has. The agent itself is not
 * asked: what it judges stays out of this.
 * @returns what differs; null: nothing.
 */
export async function repeatAgent(
  { policy, environment, signal }: Run,
  work: ConversationWork,
  held: UnjudgedTrajectory,
  speaker: Speaker,
): Promise<string | null> {
  const { tokenizer, engine } = policy;
  const calls = listCalls({ ...held, turns: held.timeline?.turns ?? [] });
  if (!calls) return "the record does not say what its agent asked";
  const { multiTurn } = environment;
  const steer = speaker === "record" ? new RecordedTokens(engine, held).steer : undefined;
  try {
    const again = await holdConversation(engine, work, {
      ...environment,
      // That is a part of what the agent's end gives, and not compared.
      multiTurn: { ...multiTurn, tokenizationSanityCheckMode: "disable" },
      onWarning: undefined,
      ...{ tokenizer, signal, calls, steer },
    });
    if (again.error !== undefined) return `its calls fail here: ${again.error}`;
    return (
      compareTokens(held, again) ??
      compareFields(held, again, spoken) ??
      compareTurns(held, again) ??
      // An agent that is refused a call for want of room may end its episode for that.
      (held.finishReason === "length" ? null : compareFields(held, again, ["finishReason"]))
    );
  } catch (error) {
    signal?.throwIfAborted();
    return `its calls fail here: ${(error as Error).message.split("\n", 1)[0]}`;
  }
}

/** What follows from the calls and the policy's words. */
const spoken = ["promptLength", "numTurns", "messages", "images", "segments", "toolSchemas", "sampling"] as const;
/** What an agent gives beside it. */
const judged = ["score", "finishReason", "turnScores", "extraFields"] as const;

/** Where each turn stands, and which of its tokens are calls. */
function compareTurns(held: UnjudgedTrajectory, again: UnjudgedTrajectory): string | null {
  const [turns, own] = [held, again].map(({ timeline }) =>
    (timeline?.turns ?? []).map(({ role, start, end, toolCalls }) => ({ role, start, end, toolCalls })),
  );
  return compareFields({ turns }, { turns: own }, ["turns"]);
}

/**
 * Whether an agent's episode is the one that is held here. First the policy's words, to the calls of the record: what differs there is
 * its worker's doing. Where the agent judges its answers by itself, it then runs here too: if it says and hears the same, its judgement
 * must be the same; else that cannot be compared.
 */
export async function auditAgent(
  run: Run,
  work: ConversationWork,
  held: UnjudgedTrajectory,
  isOwnClass: boolean,
): Promise<Verdict> {
  const reason = await repeatAgent(run, work, held, isOwnClass ? "policy" : "record");
  if (reason !== null) return { is: "different", reason };
  if (held.score === null && held.turnScores.length === 0) return { is: "same" };
  // Another sampler gives it other answers.
  if (!isOwnClass) return { is: "open", reason: "its agent judges by itself, and another class of bits answered it" };
  const { policy, environment, signal } = run;
  const { tokenizer, engine } = policy;
  try {
    const own = await holdConversation(engine, work, { ...environment, onWarning: undefined, tokenizer, signal });
    const other = own.error ?? compareTokens(held, own) ?? compareFields(held, own, spoken);
    if (other !== null) return { is: "open", reason: `its agent asks otherwise here: ${other}` };
    const judgement = compareFields(held, own, judged);
    return judgement === null ? { is: "same" } : { is: "different", reason: judgement };
  } catch (error) {
    signal?.throwIfAborted();
    return { is: "open", reason: `its agent cannot run here: ${(error as Error).message.split("\n", 1)[0]}` };
  }
}
