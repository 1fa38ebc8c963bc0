import { basename } from "node:path";
import { type ChatMessage, CriaError, type TurnRecord } from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import { checkEpisode, layOutGraph } from "@cria/episodes";
import { isUsableNumber } from "@cria/episodes/internal";
import type { TokenizationCheck } from "@cria/tokenizer-delta";
import { ChatSession } from "../chat/chat-session.js";
import { isRoleRewards, type RoleRewards, theRoleRewards } from "../chat/role-rewards.js";
import type { DatasetRow } from "../data/dataset-row.js";
import type { AgentLoopContext, AgentLoopOutput, SamplingParams } from "../loops/agent-loop.js";
import { createAgentLog } from "../loops/state-log.js";
import { describeData, keepRecord } from "../plain-data.js";
import { describeError, isDeadlineExceeded, runWithDeadline } from "../run-with-deadline.js";
import { takeTurn } from "../take-turn.js";
import type { AgentResult } from "./agent-function.js";
import { repeatCalls } from "./repeat-calls.js";

/**
 * Runs one episode of an agent that calls the policy itself: opens its session, runs the agent under the episode's
 * deadline, and assembles the session's calls into the output.
 * @param run the agent; its result is the episode's score.
 */
export async function runAgentEpisode(
  context: AgentLoopContext,
  sampling: SamplingParams,
  row: DatasetRow,
  run: (session: ChatSession, signal: AbortSignal) => AgentResult | Promise<AgentResult>,
): Promise<AgentLoopOutput> {
  const { engine, tokenizer, multiTurn, agent, calls, signal, request, onWarning } = context;
  const { stop, maxTokensPerTurn, seed } = sampling;
  const log = createAgentLog();
  const session = new ChatSession({
    engine,
    tokenizer,
    name: basename(engine.info.path),
    format: multiTurn.format,
    seed,
    sampling: pickSampling(sampling),
    enforceSampling: true,
    stop,
    production: multiTurn.useInferenceChatTemplate,
    limits: {
      context: context.contextLength,
      calls: agent.maxCalls,
      ...(maxTokensPerTurn === null ? {} : { answer: maxTokensPerTurn }),
    },
    images: context.imageAccess,
    policyVersion: () => context.policyVersion,
    onWarning,
    trace: context.trace,
    signal,
  });
  log.enter("generating");
  let result: AgentResult;
  let error: string | undefined;
  let isOut = false;
  try {
    // No deadline: the recorded episode kept within it.
    if (calls) await repeatCalls(session, calls);
    else result = await runWithDeadline(agent.timeoutS, signal, (ending) => run(session, ending));
  } catch (cause) {
    if (signal?.aborted || endsRun(cause)) throw cause;
    isOut = session.refusal !== null && !isDeadlineExceeded(cause);
    if (!isOut)
      error = isDeadlineExceeded(cause)
        ? `the agent gave no result within ${agent.timeoutS} s (rollout.agent.timeout_s)`
        : describeError(cause);
  } finally {
    session.dispose();
  }
  log.enter("terminated");
  request.enter("running");
  const { score, rewards: given, extra, wrong } = isOut ? outOfRoom : readScore(result);
  const output = describeEpisode(session, row, context);
  const rewards = session.roleRewards ?? given;
  error ??= wrong ?? (rewards ? describeMissing(output, rewards) : undefined);
  const own = session.outcome ?? score ?? (rewards ? 0 : null);
  const tokenization = error === undefined ? await checkTokens(session, context, output.metrics) : null;
  return {
    ...output,
    finishReason: isOut ? "length" : output.finishReason,
    turnScores: [...(output.turnScores ?? []), ...(rewards ? placeRewards(output, rewards) : [])],
    score: own,
    ...(own === null ? { scoreError: describeNoScore(result) } : {}),
    extraFields: tokenization ? { ...extra, tokenization } : extra,
    transitions: log.transitions,
    ...(error === undefined ? {} : { error }),
  };
}

/**
 * Runs the sanity check on every conversation and counts the results by kind; returns the first that is not "equal".
 */
async function checkTokens(
  { graph }: ChatSession,
  { tokenizer, multiTurn }: AgentLoopContext,
  metrics: Record<string, number>,
): Promise<TokenizationCheck | null> {
  const { tokenizationSanityCheckMode: mode, useInferenceChatTemplate: production } = multiTurn;
  if (mode === "disable") return null;
  await takeTurn();
  const checks = checkEpisode(graph, { tokenizer, mode, production }).filter(({ kind }) => kind !== "equal");
  for (const { kind } of checks) metrics[`tokenization_${kind}`] = (metrics[`tokenization_${kind}`] ?? 0) + 1;
  return checks[0] ?? null;
}

const aScore = "a finite number, true or false, { score, ...extra } or { rewards, ...extra }";

/** Message for an agent without a score; used only if the task has no reward function. */
function describeNoScore(result: unknown): string {
  const received = result === undefined || result === null ? "nothing" : describeData(result);
  return `the agent gave no score: expected ${aScore}, and received ${received}; or give the task a reward`;
}

/** Assembles the calls of a session into the loop's output. */
function describeEpisode(
  session: ChatSession,
  row: DatasetRow,
  { agent, multiTurn }: AgentLoopContext,
): AgentLoopOutput & { finishReason: NonNullable<AgentLoopOutput["finishReason"]> } {
  const { branchCredit: credit, trainOnConstrained } = agent;
  const { trainOnToolCalls } = multiTurn;
  const laidOut = layOutGraph(session.graph, { credit, trainOnConstrained, trainOnToolCalls });
  if (laidOut === null) return describeSilence(session, row);
  const { places, answers: _, ...episode } = laidOut;
  const { responseMask, turns } = episode;
  return {
    ...episode,
    // A reward for an answer without trained tokens is dropped.
    turnScores: session.rewards.flatMap(({ node, value }) => {
      const tokenIndex = findTaught(responseMask, turns, places.get(node));
      return tokenIndex === null ? [] : [{ value, tokenIndex }];
    }),
    numTurns: turns.length + 1,
    metrics: { ...session.metrics },
  };
}

/** An agent that never called the policy. */
function describeSilence({ metrics }: ChatSession, row: DatasetRow) {
  return {
    tokenIds: [],
    promptLength: 0,
    responseMask: [],
    rolloutLogprobs: [],
    messages: row.prompt as ChatMessage[],
    finishReason: "stop" as const,
    numTurns: 1,
    metrics: { ...metrics },
  };
}

/** Index of the last trained token of the answer that ends at token `last`; null: none is trained. */
function findTaught(
  mask: ArrayLike<number>,
  turns: readonly { start: number; end: number }[],
  last: number | undefined,
): number | null {
  const turn = turns.find(({ end }) => end - 1 === last);
  if (!turn) return null;
  for (let t = turn.end - 1; t >= turn.start; t--) if (mask[t] === 1) return t;
  return null;
}

/** The error of rewards that lack a role which the policy played. */
function describeMissing({ turns }: AgentLoopOutput, rewards: RoleRewards): string | undefined {
  const missing = [...listRoles(turns)].filter((role) => !Object.hasOwn(rewards, role));
  if (missing.length === 0) return undefined;
  return `the agent's rewards lack a role that was played: expected ${[...listRoles(turns)].join(", ")}, and received ${Object.keys(rewards).join(", ") || "none"}`;
}

/** A role's reward lands on its last trained token. That of a role without one, which never answered, is dropped. */
function placeRewards({ turns = [], responseMask: mask }: AgentLoopOutput, rewards: RoleRewards) {
  return Object.entries(rewards).flatMap(([role, value]) => {
    const taught = turns.flatMap((turn) =>
      roleOf(turn) === role ? (findTaught(mask, turns, turn.end - 1) ?? []) : [],
    );
    return taught.length === 0 ? [] : [{ value, tokenIndex: taught.at(-1)! }];
  });
}

function listRoles(turns: AgentLoopOutput["turns"] = []): Set<string> {
  return new Set(turns.flatMap((turn) => roleOf(turn) ?? []));
}

function roleOf({ call }: TurnRecord): string | undefined {
  return call?.request.role as string | undefined;
}

interface AgentScore {
  score: number | null;
  rewards: RoleRewards | null;
  extra: Record<string, unknown>;
  /** Why the given score is invalid. */
  wrong?: string;
}

/** Score when tokens or calls ran out: the policy's own doing, hence 0. */
const outOfRoom: AgentScore = { score: 0, rewards: null, extra: {} };

/** Reads an untrusted result. An invalid score fails only its episode, as an agent that throws does. */
function readScore(result: AgentResult): AgentScore {
  if (typeof result === "number") return checkScore(result, {});
  if (typeof result === "boolean") return { score: Number(result), rewards: null, extra: {} };
  if (typeof result !== "object" || result === null) return { score: null, rewards: null, extra: {} };
  const { score, rewards = null, ...others } = result;
  const extra = keepRecord(others);
  if (rewards === null) return checkScore(score, extra);
  if (isRoleRewards(rewards)) return { ...checkScore(score, extra), rewards: { ...rewards } };
  const wrong = `the agent's rewards are wrong: expected ${theRoleRewards}, and received ${describeData(rewards)}`;
  return { score: null, rewards: null, extra, wrong };
}

function checkScore(given: unknown, extra: Record<string, unknown>): AgentScore {
  const score = typeof given === "boolean" ? Number(given) : given;
  if (score === undefined || score === null) return { score: null, rewards: null, extra };
  if (isUsableNumber(score)) return { score, rewards: null, extra };
  return {
    score: null,
    rewards: null,
    extra,
    wrong: `the agent's score is wrong: expected ${aScore}, and received ${describeData(given)}`,
  };
}

/** Engine and config errors end the run. A bad request is the agent's fault, even if the agent rethrows our error. */
export function endsRun(cause: unknown): boolean {
  try {
    return cause instanceof CriaError && /^(engine|config)\//.test(cause.code) && cause.code !== "engine/disposed";
  } catch {
    return false;
  }
}
