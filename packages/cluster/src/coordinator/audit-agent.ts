import type { UnjudgedTrajectory } from "@cria/episodes";
import { listCalls } from "@cria/episodes/internal";
import { RecordedTokens } from "@cria/records";
import type { ConversationWork } from "@cria/rollout";
import { holdConversation } from "@cria/rollout/internal";
import type { CoordinatedRun } from "@cria/trainer";
import { compareFields, compareTokens, type Verdict } from "./compare-records.js";

type Run = Pick<CoordinatedRun, "policy" | "environment" | "signal">;

/** Source of the policy's tokens when an agent's conversation is repeated: the policy, or the record itself. */
type Speaker = "policy" | "record";

/**
 * Repeats the recorded calls of an agent, and compares the policy's answers with the record's. The agent itself does
 * not run, so its judgement is not compared.
 * @returns the difference; null: none.
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
      // Sanity-check results are part of the agent's output, which is not compared.
      multiTurn: { ...multiTurn, tokenizationSanityCheckMode: "disable" },
      onWarning: undefined,
      ...{ tokenizer, signal, calls, steer },
    });
    if (again.error !== undefined) return `its calls fail here: ${again.error}`;
    return (
      compareTokens(held, again) ??
      compareFields(held, again, spoken) ??
      compareTurns(held, again) ??
      // An agent may end its episode because a call was refused for lack of room.
      (held.finishReason === "length" ? null : compareFields(held, again, ["finishReason"]))
    );
  } catch (error) {
    signal?.throwIfAborted();
    return `its calls fail here: ${(error as Error).message.split("\n", 1)[0]}`;
  }
}

/** Fields that follow from the calls and the policy's answers. */
const spoken = ["promptLength", "numTurns", "messages", "images", "segments", "toolSchemas", "sampling"] as const;
/** Fields that the agent itself determines. */
const judged = ["score", "finishReason", "turnScores", "extraFields"] as const;

/** Compares the token range and the call tokens of each turn. */
function compareTurns(held: UnjudgedTrajectory, again: UnjudgedTrajectory): string | null {
  const [turns, own] = [held, again].map(({ timeline }) =>
    (timeline?.turns ?? []).map(({ role, start, end, toolCalls }) => ({ role, start, end, toolCalls })),
  );
  return compareFields({ turns }, { turns: own }, ["turns"]);
}

/**
 * Audits an agent's episode. First it repeats the recorded calls: a difference in the policy's answers is the
 * worker's doing. If the agent judges its answers itself, it then runs here, too: if all tokens are equal, its
 * judgement must be equal; otherwise it cannot be compared.
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
  // Another class of bits samples other answers.
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
